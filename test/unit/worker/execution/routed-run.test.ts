// A run that is on its way from one server to another, and is stopped in that moment.
// This moment cannot be produced from outside: the runs and the servers are made up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  Execution,
  RunEnd,
  RunEvents,
  RunSink,
} from '../../../../src/worker/execution/execution.ts';
import { RoutedRun, type Router } from '../../../../src/worker/execution/routed-run.ts';
import { RunTimes } from '../../../../src/worker/execution/run-times.ts';
import type { StopReason } from '../../../../src/worker/execution/stop-reason.ts';
import { serverFailure } from '../../../../src/worker/failure/server-failure.ts';
import { Admission } from '../../../../src/worker/servers/pool/queue.ts';
import type { Server } from '../../../../src/worker/servers/server.ts';

const server = {} as Server;
const router: Router = {
  admission: new Admission(() => 1),
  maxWaitMs: null,
  isContested: false,
  choose: () => server,
  probesOf: () => 1,
  remember: () => {},
  addWaiting: () => {},
  forget: () => {},
  suspect: () => {},
};

/** A running declared read whose server is given up, and whose deadline passes before it has ended there. */
function stopWhileItMoves(end: RunEnd) {
  const runs: RunEvents[] = [];
  const stops: StopReason[] = [];
  const ends: RunEnd[] = [];
  const create = (_server: Server, events: RunEvents) => {
    runs.push(events);
    const stop = (reason: StopReason) => stops.push(reason);
    return { start: () => {}, stop, isSent: true, isRevocable: true } as unknown as Execution;
  };
  const sink = { hasLeft: false, restart: () => true } as unknown as RunSink;
  const runEnded = (reported: RunEnd) => ends.push(reported);
  const events = { sink, traceparent: null, seen: () => {}, runEnded };
  const wish = { isReadOnly: true, hasKey: false, after: null, needsPrimary: false };
  const run = new RoutedRun(router, wish, create, events, new RunTimes());
  run.start();
  run.leaveServer();
  run.stop('deadline');
  runs[0]?.runEnded(end);
  return { begun: runs.length, stops: stops.length, ends };
}

test('a run that is stopped while it moves ends with that reason, and does not begin again', () => {
  const end: RunEnd = { kind: 'batch stopped', reason: 'stopping', outcome: 'rolled_back' };
  assert.deepEqual(stopWhileItMoves(end), {
    begun: 1,
    stops: 1,
    ends: [{ ...end, reason: 'deadline' }],
  });
});

test('a run that ends by itself while it moves, after its time, keeps its end, and does not begin again', () => {
  for (const end of [
    { kind: 'answered', failure: null, facts: null },
    { kind: 'lost', outcome: 'unknown' },
  ] as const) {
    assert.deepEqual(stopWhileItMoves(end), { begun: 1, stops: 1, ends: [end] });
  }
});

type Wish = { readonly isReadOnly: boolean; readonly hasKey: boolean };
const answeredWith = (errno: number, outcome: 'rolled_back' | 'partial'): RunEnd => ({
  kind: 'answered',
  facts: null,
  failure: serverFailure(
    { errno, sqlState: 'HY000', message: 'refused' },
    { isReadOnly: false, isRead: false },
    outcome,
  ),
});
const unsent: RunEnd = { kind: 'not executed', reason: 'server unreachable' };

/**
 * The number of its beginnings if its first run was sent and ends in this way, and the reported ends.
 * @param act done before it ends
 * @param second the end of the second run; null: it goes on
 */
function beginnings(
  wish: Wish,
  end: RunEnd,
  { hasLeft = false, act = (_run: RoutedRun) => {}, second = null as RunEnd | null } = {},
) {
  const runs: RunEvents[] = [];
  const stops: StopReason[] = [];
  const ends: RunEnd[] = [];
  const create = (_server: Server, events: RunEvents) => {
    runs.push(events);
    const stop = (reason: StopReason) => stops.push(reason);
    const isSent = runs.length === 1;
    return { start: () => {}, stop, isSent, isRevocable: true } as unknown as Execution;
  };
  const sink = { hasLeft, restart: () => !hasLeft } as unknown as RunSink;
  const runEnded = (reported: RunEnd) => ends.push(reported);
  const events = { sink, traceparent: null, seen: () => {}, runEnded };
  const all = { ...wish, after: null, needsPrimary: false };
  let probes = 0;
  const changing: Router = {
    ...router,
    choose: () => {
      probes += 1;
      return server;
    },
    probesOf: () => probes,
  };
  const run = new RoutedRun(changing, all, create, events, new RunTimes());
  run.start();
  act(run);
  runs[0]?.runEnded(end);
  if (second !== null) runs[1]?.runEnded(second);
  return { begun: runs.length, stops, ends };
}

const read = { isReadOnly: true, hasKey: false };
const write = { isReadOnly: false, hasKey: false };
const keyed = { isReadOnly: false, hasKey: true };

test('a write whose connection was lost keeps its end, and a declared read begins at another server', () => {
  const lost: RunEnd = { kind: 'lost', outcome: 'unknown' };
  assert.deepEqual(beginnings(write, lost), { begun: 1, stops: [], ends: [lost] });
  assert.deepEqual(beginnings(keyed, lost), { begun: 1, stops: [], ends: [lost] });
  assert.deepEqual(beginnings(read, lost), { begun: 2, stops: [], ends: [] });
});

test('a declared read that was sent to a server which was lost is not reported as not executed by the next one', () => {
  const lost: RunEnd = { kind: 'lost', outcome: 'unknown' };
  const second: RunEnd = { kind: 'not executed', reason: 'waited too long' };
  const { ends } = beginnings(read, lost, { second });
  assert.deepEqual(ends, [{ kind: 'cut short', reason: 'waited too long' }]);
});

test('a batch that a read-only server has rolled back begins at another server only with a key', () => {
  const rolledBack = answeredWith(1290, 'rolled_back');
  assert.equal(beginnings(keyed, rolledBack).begun, 2);
  assert.deepEqual(beginnings(write, rolledBack), { begun: 1, stops: [], ends: [rolledBack] });
  assert.equal(beginnings(keyed, answeredWith(1290, 'partial')).begun, 1);
  assert.equal(beginnings(keyed, answeredWith(1062, 'rolled_back')).begun, 1);
});

test('a sent write does not move from a server that must not be used any more, and neither does a read of which a byte has left', () => {
  const answered: RunEnd = { kind: 'answered', failure: null, facts: null };
  const act = (run: RoutedRun) => run.leaveServer();
  assert.deepEqual(beginnings(write, answered, { act }), { begun: 1, stops: [], ends: [answered] });
  assert.deepEqual(beginnings(read, answered, { act, hasLeft: true }), {
    begun: 1,
    stops: [],
    ends: [answered],
  });
  const moved: RunEnd = { kind: 'stopped', reason: 'server left' };
  const found = beginnings(read, moved, { act });
  assert.deepEqual([found.begun, found.stops], [2, ['server left']]);
});

test('a write that was stopped in order to move does not begin at another server, unless it was not executed', () => {
  for (const end of [
    { kind: 'stopped', reason: 'server left' },
    { kind: 'batch stopped', reason: 'server left', outcome: 'rolled_back' },
  ] as const) {
    assert.deepEqual(beginnings(write, end), { begun: 1, stops: [], ends: [end] });
  }
  assert.equal(beginnings(write, { kind: 'not executed', reason: 'server left' }).begun, 2);
  assert.equal(beginnings(write, unsent).begun, 2);
});
