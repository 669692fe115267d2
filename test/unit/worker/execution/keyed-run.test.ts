// The end of a batch with a key: its connections are lost again and again, or the key is there already. A server cannot produce this many
// losses at one place with every kind of table, so these tests invent the runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseIdempotencyTable } from '../../../../src/shared/database/idempotency-table.ts';
import type {
  CreateRun,
  Execution,
  Launcher,
  RouteWish,
  RunContext,
  RunEnd,
  RunEvents,
  RunSink,
} from '../../../../src/worker/execution/execution.ts';
import { KeyStore } from '../../../../src/worker/execution/idempotency/key-store.ts';
import { KeyedRun } from '../../../../src/worker/execution/keyed-run.ts';
import { RoutedRun, type Router } from '../../../../src/worker/execution/routed-run.ts';
import { RunTimes } from '../../../../src/worker/execution/run-times.ts';
import type { Batch, BatchStep } from '../../../../src/worker/execution/work.ts';
import { Admission, type Waiter } from '../../../../src/worker/servers/pool/queue.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  type ScriptedAnswer,
  silentLog,
} from '../../support/scripted-connection.ts';

const key = { id: 'aa', request: 'bb', timeoutMs: 60_000 };
const lost: RunEnd = { kind: 'lost', outcome: 'unknown' };
const succeeded: RunEnd = { kind: 'answered', failure: null, facts: null };
const context = { address: 'db', consistency: null, control: null } as unknown as RunContext;

/** A step that writes; null: it is not known to which tables. */
const stepOn = (tables: readonly { schema: string; name: string }[] | null): BatchStep =>
  ({
    sql: 'x',
    statement: { isRead: false, effects: { confinedTo: tables, isUndoable: () => true } },
  }) as unknown as BatchStep;

/**
 * The result of a batch of these steps if its attempts end in these ways, one after the other.
 * @param isBehind it begins after another request with the same key has ended
 */
function run(steps: readonly BatchStep[], ends: readonly RunEnd[], isBehind = false) {
  const reported: RunEnd[] = [];
  const left = [...ends];
  const launch = (_wish: unknown, create: CreateRun, events: RunEvents): Execution => {
    create(context, events);
    const start = () => {
      const end = left.shift();
      if (end !== undefined) events.runEnded(end);
    };
    return { start, isSent: true, stop: () => {} } as unknown as Execution;
  };
  const launcher = { admission: new Admission(() => 1), launch } as unknown as Launcher;
  const batch = { steps, key: null, isAtomic: true, mustUndo: null } as unknown as Batch;
  const events: RunEvents = {
    sink: { restart: () => true } as unknown as RunSink,
    traceparent: null,
    seen: () => {},
    runEnded: (end) => reported.push(end),
  };
  const keys = new KeyStore(parseIdempotencyTable('request_keys', 'd'), silentLog);
  const before = isBehind ? keys.locks.acquire(key.id, () => {}) : null;
  new KeyedRun(launcher, keys, { batch, key, after: null }, events, new RunTimes()).start();
  before?.release();
  return { reported, left: left.length };
}

const fourLosses = [lost, lost, lost, lost];

test('if the key is proven to be free, writes to known tables are reported as rolled back', () => {
  const steps = [stepOn([{ schema: 'd', name: 't' }])];
  assert.deepEqual(run(steps, [...fourLosses, succeeded]).reported, [
    { kind: 'lost', outcome: 'rolled_back' },
  ]);
});

test('if it is unknown which tables were written to, nothing runs again after a loss', () => {
  const steps = [stepOn([{ schema: 'd', name: 't' }]), stepOn(null)];
  assert.deepEqual(run(steps, [lost, succeeded]), { reported: [lost], left: 0 });
});

test('if the server reports that a table is not undone, nothing runs again', () => {
  const steps = [stepOn([{ schema: 'd', name: 't' }])];
  const refused: RunEnd = {
    kind: 'batch failed',
    fault: { kind: 'not undoable' },
    statement: null,
    outcome: 'not_executed',
  };
  for (const losses of [[lost], fourLosses]) {
    const found = run(steps, [...losses, refused, lost, succeeded]);
    assert.deepEqual(found, { reported: [lost], left: 0 });
  }
});

test('after a loss, an attempt that could not take the key does not report that nothing was executed', () => {
  const steps = [stepOn([{ schema: 'd', name: 't' }])];
  const stopped: RunEnd = { kind: 'not executed', reason: 'deadline' };
  assert.deepEqual(run(steps, [lost, stopped]).reported, [
    { kind: 'key unknown', reason: 'deadline' },
  ]);
  assert.deepEqual(run(steps, [stopped]).reported, [stopped]);
});

test('after a loss, an attempt that ends in an exception does not report that nothing was executed', () => {
  const steps = [stepOn([{ schema: 'd', name: 't' }])];
  const faulted = { kind: 'faulted', isSent: false, cause: null } as const;
  assert.deepEqual(run(steps, [faulted]).reported, [faulted]);
  assert.deepEqual(run(steps, [lost, faulted]).reported, [{ ...faulted, isSent: true }]);
});

test('a repetition that gets the lock at its deadline does not report that nothing was executed', () => {
  const steps = [stepOn([{ schema: 'd', name: 't' }])];
  const stopped: RunEnd = { kind: 'not executed', reason: 'deadline' };
  const unknown: RunEnd = { kind: 'key unknown', reason: 'deadline' };
  assert.deepEqual(run(steps, [stopped], true), { reported: [unknown], left: 0 });
});

/**
 * Repeats a request whose key has this row, in a section with several servers: runs on real sessions, of a server that is made up.
 * `running`: the requests that still count as running on that server.
 */
async function repeat(request: string, reply: string | null) {
  const answer = (sql: string): ScriptedAnswer => {
    if (sql.includes('INSERT INTO')) return { errno: 1062 };
    if (sql.includes('LOCK IN SHARE MODE')) return { rows: [[request, 'cc', reply]] };
    return sql === 'SHOW WARNINGS' ? { rows: [] } : 'ok';
  };
  const session = createScriptedSession(createScriptedConnection(answer));
  const pool = {
    request: (waiter: Waiter) => waiter.granted(session, null),
    release: () => {},
  };
  const running = new Set<unknown>();
  const router = {
    choose: () => ({}),
    remember: (run: unknown) => running.add(run),
    forget: (run: unknown) => running.delete(run),
    suspect: () => {},
  } as unknown as Router;
  const onServer = { ...context, pool } as unknown as RunContext;
  const launcher = {
    launch: (wish: RouteWish, create: CreateRun, events: RunEvents, times: RunTimes) =>
      new RoutedRun(router, wish, (_server, to) => create(onServer, to), events, times),
  } as unknown as Launcher;
  const keys = new KeyStore(parseIdempotencyTable('request_keys', 'd'), silentLog);
  Object.defineProperty(keys, 'isBelieved', { value: true });
  const replayed: string[] = [];
  const sink = { replay: (kept: Buffer) => replayed.push(kept.toString()) } as unknown as RunSink;
  const batch = { steps: [], key, isAtomic: true, isolation: null, mustUndo: null };
  const end = await new Promise<RunEnd>((runEnded) => {
    const events = { sink, traceparent: null, seen: () => {}, runEnded };
    const wish = { batch: batch as unknown as Batch, key, after: null };
    new KeyedRun(launcher, keys, wish, events, new RunTimes()).start();
  });
  return { end, replayed, running: running.size };
}

test('a stored key answers with its reply only to the request that it belongs to, and nothing runs any more', async () => {
  const nothing = { replayed: [], running: 0 };
  assert.deepEqual(await repeat('other', 'the first reply'), {
    end: { kind: 'key refused', reason: 'other request' },
    ...nothing,
  });
  assert.deepEqual(await repeat('bb', null), {
    end: { kind: 'key refused', reason: 'no reply' },
    ...nothing,
  });
  assert.deepEqual(await repeat('bb', 'the first reply'), {
    end: succeeded,
    replayed: ['the first reply'],
    running: 0,
  });
});
