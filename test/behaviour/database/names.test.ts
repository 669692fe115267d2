// Names of servers: what the gateway reports if DNS does not know one, or is silent, and that open sessions go on.

import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { endConnections } from '../../support/database/end-connections.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { logShows } from '../../support/log-shows.ts';
import { createWorkspace } from '../../support/workspace.ts';

const workspace = createWorkspace('names', () => {});
const silence = join(workspace.path, 'silent');
const faults = fileURLToPath(new URL('./support/silent-dns.js', import.meta.url));
const env = { NODE_OPTIONS: `--import ${faults}`, SILENT_DNS: silence };

let database: Database;
let gateway: Gateway;

before(async () => {
  database = await startDatabase();
  await createGate(database);
  await database.query(
    `create user named identified by 'pw'; grant all on ${database.name}.* to named`,
  );
});
after(async () => {
  await gateway?.stop();
  await database?.query('drop user named');
  await database?.stop();
  workspace.remove();
});

function start(host: string): Promise<Gateway> {
  const target = { ...database, user: 'named', password: 'pw', host };
  return startGateway({ database: target, settings: { workers: 1, pool: 2 }, env });
}

const readyOf = async () => {
  const { status, text } = await gateway.get('/readyz');
  return `${status} ${text}`;
};
const unresolved = '503 {"ready":false,"code":"DATABASE_UNRESOLVED","errno":null}';

test('a name that DNS does not know is reported as such, and not as the fault of the server', async () => {
  gateway = await start('unknown.test');
  await eventually('unresolved', async () => (await readyOf()) === unresolved);
  const reply = await gateway.post('/v1/query', { sql: 'select 1' });
  const { code, detail, outcome } = reply.json<Record<string, unknown>>();
  assert.deepEqual([reply.status, code, outcome], [503, 'DATABASE_UNREACHABLE', 'not_executed']);
  assert.match(String(detail), /^The name of the database server cannot be resolved\. /);
  await logShows(
    gateway,
    /cannot connect to the database .*ENOTFOUND unknown\.test" hint="DNS does not know the name/,
  );
  await gateway.stop();
});

test('while DNS is silent, open sessions go on and count as ready; without one, /readyz names DNS', async () => {
  gateway = await start('db.test');
  await eventually('ready', async () => (await readyOf()).startsWith('200'));
  const gate = await closeGate(database);
  const processlist = await openProcesslist(database);
  try {
    const busy = gateway.dbPost({ SQL: `select ${gate.zero}` });
    await processlist.started('from gate');
    const [thread] = await processlist.running('from gate');
    writeFileSync(silence, '');
    await eventually('the others are gone', async () => {
      await endConnections(database, 'named', `id <> ${thread?.id}`);
      const sql = "select id from information_schema.processlist where user = 'named'";
      return (await database.query(sql)).length === 1;
    });
    // The answers of a second are the same: one that takes long is from a probe that DNS keeps waiting. A probe has a second: if the machine
    // pauses for as long, neither that answer nor those of the next second count.
    const seen: string[] = [];
    let pausedAt = Number.NEGATIVE_INFINITY;
    await eventually('a probe has waited for DNS', async () => {
      const from = performance.now();
      const answer = await readyOf();
      const now = performance.now();
      if (now - from > 900) pausedAt = now;
      if (now - pausedAt < 1_100) return false;
      seen.push(answer);
      return now - from > 500;
    });
    assert.deepEqual([...new Set(seen)], ['200 {"ready":true}']);
    await gate.open();
    assert.equal((await busy).status, 200);
    // The session is idle now, so the probe can ask on it.
    await eventually('ready', async () => (await readyOf()) === '200 {"ready":true}');
    assert.equal((await gateway.dbPost({ SQL: 'select 1' })).status, 200);
    await endConnections(database, 'named');
    await eventually('unresolved', async () => (await readyOf()) === unresolved);
    rmSync(silence);
    await eventually('ready', async () => (await readyOf()).startsWith('200'));
  } finally {
    processlist.close();
    await gate.open();
  }
});
