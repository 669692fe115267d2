// The control connection never sends a KILL to another server, nor to another run of the same one.
// The test cannot choose from outside which server it reaches, so the connections are made up.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { ServerIdentity } from '../../../../../src/shared/mysql/identity.ts';
import { Control } from '../../../../../src/worker/servers/pool/control.ts';
import { Reachability } from '../../../../../src/worker/servers/pool/reachability.ts';
import { eventually } from '../../../../support/eventually.ts';
import {
  createScriptedConnection,
  type ScriptedConnection,
  silentLog,
} from '../../../support/scripted-connection.ts';

const startedAt = 1_700_000_000;
const own: ServerIdentity = { name: 'db1:3306/1', startedAt };
const elsewhere: ServerIdentity = { name: 'db2:3306/2', startedAt };
const earlierRun: ServerIdentity = { name: own.name, startedAt: startedAt - 60 };

const started: Control[] = [];
after(() => {
  for (const control of started) control.close();
});

/** A connection to a server that says it is this one. */
function connectionTo({ name, startedAt: start }: ServerIdentity): ScriptedConnection {
  const [hostname = '', port = '', id = ''] = name.split(/[:/]/);
  return createScriptedConnection((statement) => {
    if (statement.includes('@@hostname')) return { rows: [[hostname, port, id, `${start + 100}`]] };
    if (statement.includes('Uptime')) return { rows: [['Uptime', '100']] };
    return 'ok';
  });
}

/** A control connection that is open; each time it is opened it takes the next of these. */
async function startControl(...connections: readonly ScriptedConnection[]): Promise<Control> {
  const next = [...connections];
  const control = new Control(
    async () => next.shift() ?? Promise.reject(new Error('there is no further server')),
    new Reachability(silentLog, { address: 'db', account: 'app' }),
    silentLog,
  );
  started.push(control);
  control.start();
  await eventually('the control connection is open', () => control.observations.connected);
  return control;
}

const kills = ({ sent }: ScriptedConnection) => sent.filter((sql) => sql.startsWith('KILL'));

test('kills only on the same run of the same server', async () => {
  const connection = connectionTo(own);
  const control = await startControl(connection);
  for (const [identity, isKilled] of [
    [elsewhere, false],
    [earlierRun, false],
    [own, true],
    [{ ...own, startedAt: startedAt + 1 }, true],
  ] as const) {
    const before = kills(connection).length;
    assert.equal(
      await control.kill(
        createScriptedConnection(() => 'ok', 41),
        identity,
      ),
      isKilled,
    );
    assert.equal(kills(connection).length - before, isKilled ? 1 : 0, JSON.stringify(identity));
  }
  assert.deepEqual([...new Set(kills(connection))], ['KILL QUERY 41']);
});

test('sends no KILL to a connection that is closed: its number may be given to another client', async () => {
  const connection = connectionTo(own);
  const control = await startControl(connection);
  const target = createScriptedConnection(() => 'ok', 42);
  target.lose();
  assert.equal(await control.kill(target, own), false);
  assert.deepEqual(kills(connection), []);
});

test('ends lost sessions of this run of its server; those of an earlier run are forgotten, those of another server wait for it', async () => {
  const first = connectionTo(own);
  const second = connectionTo(elsewhere);
  const control = await startControl(first, second);
  control.endLost({ threadId: 1, identity: earlierRun });
  control.endLost({ threadId: 2, identity: elsewhere });
  control.endLost({ threadId: 3, identity: own });
  await eventually('the lost session is ended', () => kills(first).length > 0);
  assert.deepEqual(kills(first), ['KILL 3']);
  first.lose();
  await eventually('the other server is reached', () => kills(second).length > 0);
  assert.deepEqual(kills(second), ['KILL 2']);
  assert.deepEqual(kills(first), ['KILL 3']);
});

test('an attempt that a partition has cut off is made again when the server is back', async () => {
  const connection = connectionTo(own);
  let attempts = 0;
  const reachability = new Reachability(silentLog, { address: 'db', account: 'app' });
  const control = new Control(
    (signal) => {
      attempts += 1;
      if (attempts > 1) return Promise.resolve(connection);
      return new Promise((_opened, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    },
    reachability,
    silentLog,
  );
  started.push(control);
  control.start();
  reachability.returned();
  // The first attempt would end by itself, after ten seconds.
  assert.equal(attempts, 2);
  await eventually('the control connection is open', () => control.observations.connected);
});

test('a control connection that is closed is not opened again when the server is back', () => {
  let attempts = 0;
  const reachability = new Reachability(silentLog, { address: 'db', account: 'app' });
  const control = new Control(
    (signal) => {
      attempts += 1;
      return new Promise((_opened, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    },
    reachability,
    silentLog,
  );
  control.start();
  control.close();
  reachability.returned();
  assert.equal(attempts, 1);
});

test('it goes on asking whether the server is there when that refuses to list its processes', async (t) => {
  const connection = createScriptedConnection((statement) => {
    if (statement.includes('@@hostname')) return { rows: [['db1', '3306', '1', '1700000100']] };
    if (statement.includes('Uptime')) return { rows: [['Uptime', '100']] };
    return statement.includes('PROCESSLIST') ? { errno: 1142 } : 'ok';
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const control = new Control(
    async () => connection,
    new Reachability(silentLog, { address: 'db', account: 'app' }),
    silentLog,
  );
  started.push(control);
  control.start();
  const turns = async () => {
    for (let n = 0; n < 20; n += 1) await turn();
  };
  await turns();
  control.noteRunningOn(5, own);
  for (let n = 0; n < 3; n += 1) {
    t.mock.timers.tick(5_000);
    await turns();
  }
  assert.equal(connection.sent.filter((sent) => sent === 'ping').length, 3);
});
