// How a session comes back to the pool: lent again at once only if it is clean, reset first if it is not, never again if it is broken.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Pool, type SessionVerdict } from '../../../../../src/worker/servers/pool/pool.ts';
import type { Waiter } from '../../../../../src/worker/servers/pool/queue.ts';
import { Reachability } from '../../../../../src/worker/servers/pool/reachability.ts';
import type { Session } from '../../../../../src/worker/servers/pool/session.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  silentLog,
} from '../../../support/scripted-connection.ts';

/** The bytes sent on the session of one request before the next one has it. */
async function betweenTwo(verdict: SessionVerdict): Promise<readonly string[]> {
  const happened: string[] = [];
  const open = async () => {
    const session = createScriptedSession(createScriptedConnection());
    happened.push('opened');
    const reset = async () => void happened.push('reset');
    return Object.assign(session, { reset }) as Session;
  };
  const pool = new Pool(
    {
      size: 1,
      queue: 10,
      maxWaitMs: 5_000,
      open,
      onOpened: () => {},
      mayLend: null,
      log: silentLog,
    },
    new Reachability(silentLog, { address: 'db', account: 'app' }),
  );
  const granted: Session[] = [];
  const waiter: Waiter = {
    granted: (session) => {
      happened.push('lent');
      granted.push(session);
    },
    refused: (reason) => happened.push(reason),
  };
  pool.request(waiter);
  for (let n = 0; n < 5; n += 1) await turn();
  pool.release(granted[0] as Session, verdict);
  pool.request(waiter);
  for (let n = 0; n < 5; n += 1) await turn();
  return happened;
}

test('a session is lent again at once only if it is clean', async () => {
  assert.deepEqual(await betweenTwo('clean'), ['opened', 'lent', 'lent']);
  assert.deepEqual(await betweenTwo('unclean'), ['opened', 'lent', 'reset', 'lent']);
  assert.deepEqual(await betweenTwo('broken'), ['opened', 'lent', 'opened', 'lent']);
});
