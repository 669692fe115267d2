// A run that is on its way from one server to another, and is stopped in that moment.
// The moment cannot be had from outside: what runs, and the servers, are made up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Admission } from '../../../../src/worker/backend/admission.ts';
import type { Execution } from '../../../../src/worker/execute/execution.ts';
import type { RunEnd, StopReason } from '../../../../src/worker/execute/outcome.ts';
import type { Route, Router } from '../../../../src/worker/execute/route.ts';
import { RoutedRun } from '../../../../src/worker/execute/routed-run.ts';
import type { RunContext } from '../../../../src/worker/execute/run-context.ts';
import type { RunEvents, RunSink } from '../../../../src/worker/execute/run-events.ts';
import { RunTimes } from '../../../../src/worker/execute/run-times.ts';

const route: Route = { context: {} as RunContext, looks: 1 };
const router: Router = {
  admission: new Admission(() => 1),
  mostWaitMs: null,
  whyNone: 'no primary',
  choose: () => route,
  routeOf: () => route,
  remember: () => {},
  forget: () => {},
  ended: () => {},
};

/** A declared read that runs, whose server is given up, and whose deadline passes before it has ended there. */
function stopWhileItMoves(end: RunEnd) {
  const runs: RunEvents[] = [];
  const stops: StopReason[] = [];
  const ends: RunEnd[] = [];
  const create = (_context: RunContext, events: RunEvents) => {
    runs.push(events);
    const stop = (reason: StopReason) => stops.push(reason);
    return { start: () => {}, stop, isSent: true, isRevocable: true } as unknown as Execution;
  };
  const sink = { hasLeft: false, restart: () => true } as unknown as RunSink;
  const runEnded = (told: RunEnd) => ends.push(told);
  const events = { sink, traceparent: null, seen: () => {}, runEnded };
  const wish = { isReadOnly: true, hasKey: false, after: null, needsPrimary: false };
  const run = new RoutedRun(router, wish, create, events, new RunTimes());
  run.start();
  run.leaveRoute();
  run.stop('deadline');
  runs[0]?.runEnded(end);
  return { begun: runs.length, stops: stops.length, ends };
}

test('what is stopped while it moves is told why, and not begun again', () => {
  const end: RunEnd = { kind: 'batch stopped', reason: 'stopping', outcome: 'rolled_back' };
  assert.deepEqual(stopWhileItMoves(end), {
    begun: 1,
    stops: 1,
    ends: [{ ...end, reason: 'deadline' }],
  });
});

test('what ends by itself while it moves, after its time, is told as it is, and not begun again', () => {
  for (const end of [
    { kind: 'answered', failure: null, facts: null },
    { kind: 'lost', outcome: 'unknown' },
  ] as const) {
    assert.deepEqual(stopWhileItMoves(end), { begun: 1, stops: 1, ends: [end] });
  }
});
