// A session is used again only after a KILL that its server confirmed.
// An answer beside a KILL without a confirmation cannot be provoked from outside, so the server is made up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Control } from '../../../../../src/worker/servers/pool/control.ts';
import { killRunning, killStatement } from '../../../../../src/worker/servers/pool/control.ts';
import type { Pool } from '../../../../../src/worker/servers/pool/pool.ts';
import {
  createScriptedConnection,
  createScriptedSession,
} from '../../../support/scripted-connection.ts';

function createControl(isConfirmed: boolean) {
  const noted: number[] = [];
  const control = {
    kill: async () => isConfirmed,
    noteRunningOn: (threadId: number) => noted.push(threadId),
  };
  return { control: control as unknown as Control, noted };
}

/** How a session is released after a KILL. */
async function verdictAfter(isConfirmed: boolean): Promise<string> {
  const session = createScriptedSession(createScriptedConnection());
  const verdicts: string[] = [];
  const pool = { release: (_session: unknown, verdict: string) => verdicts.push(verdict) };
  await killRunning(
    pool as unknown as Pool,
    createControl(isConfirmed).control,
    session,
    Promise.resolve(),
  );
  return verdicts.join();
}

test('a session whose KILL was not confirmed is not used again, though its statement has ended', async () => {
  const session = createScriptedSession(createScriptedConnection());
  const { control, noted } = createControl(false);
  assert.equal(await killStatement(control, session, Promise.resolve()), false);
  assert.deepEqual(noted, [session.connection.threadId], 'the statement may run on');
  assert.equal(await verdictAfter(false), 'broken');
});

test('a session whose KILL was confirmed, and whose statement has ended, is reset and used again', async () => {
  const session = createScriptedSession(createScriptedConnection());
  const { control, noted } = createControl(true);
  assert.equal(await killStatement(control, session, Promise.resolve()), true);
  assert.deepEqual(noted, []);
  assert.equal(await verdictAfter(true), 'unclean');
});

test('a session that is lost during its KILL is not used again', async () => {
  const connection = createScriptedConnection();
  connection.lose();
  const { control } = createControl(true);
  assert.equal(
    await killStatement(control, createScriptedSession(connection), Promise.resolve()),
    false,
  );
});

test('a KILL that came between two statements of a request is sent again, until the answer has come', async () => {
  const session = createScriptedSession(createScriptedConnection());
  let kills = 0;
  let answered: () => void = () => {};
  const answer = new Promise<void>((resolve) => {
    answered = resolve;
  });
  const kill = async () => {
    kills += 1;
    if (kills === 3) answered();
    return true;
  };
  const control = { kill, noteRunningOn: () => {} } as unknown as Control;
  assert.equal(await killStatement(control, session, answer), true);
  assert.equal(kills, 3);
});

test('a KILL that cannot be sent yet is sent as soon as it can', async () => {
  const session = createScriptedSession(createScriptedConnection());
  let tries = 0;
  let answered: () => void = () => {};
  const answer = new Promise<void>((resolve) => {
    answered = resolve;
  });
  const kill = async () => {
    tries += 1;
    if (tries < 3) return false;
    answered();
    return true;
  };
  const control = { kill, noteRunningOn: () => {} } as unknown as Control;
  assert.equal(await killStatement(control, session, answer), true);
  assert.equal(tries, 3);
});
