// docs/operate/troubleshooting.md: every command is run as it stands, in its situation, and prints what the page shows.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, type TestContext, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { replicationHere, startReplication } from '../../support/clusters/replication.ts';
import { rolesBecome, startBefore } from '../../support/clusters/several-servers.ts';
import { createDaemon } from '../../support/daemon.ts';
import { endConnections } from '../../support/database/end-connections.ts';
import { ownServerOnly } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import type { Settings } from '../../support/ini-text.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import {
  localiseGateway,
  openCommands,
  type PageCommands,
} from '../../support/pages/page-commands.ts';
import { openSqlPrograms, type SqlPrograms } from '../../support/pages/sql-programs.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const blocks = findBlocks(readFileSync('docs/operate/troubleshooting.md', 'utf8'));
const shown = new Set<string>();
let programs: SqlPrograms | null = null;

const database = useDatabase({
  serverArguments: [],
  prepare: async (prepared) => {
    await prepared.query(`
      create table place (id int primary key, name varchar(60) not null);
      insert into place values (1, 'Baku');
      create user other@'%' identified by 'one';
      grant all on ${prepared.name}.* to other@'%'`);
    await prepared.query(describeCreation(parseIdempotencyTable('request_keys', prepared.name)));
    programs = await openSqlPrograms({ db1: (sql) => prepared.query(sql) });
  },
});
after(() => programs?.close());

/** The commands of a section, for a gateway. */
function tell(heading: string, gateway: Gateway, localise = (text: string) => text): PageCommands {
  shown.add(heading);
  const localiseHere = localiseGateway(gateway);
  return openCommands(blocks, heading, {
    functions: programs?.functions ?? '',
    localise: (text) =>
      localiseHere(localise(text)).replaceAll('/tmp/headers', `${gateway.directory}/headers`),
  });
}

async function gatewayFor(t: TestContext, settings: Settings = {}): Promise<Gateway> {
  const gateway = await startGateway({ database, settings: { workers: 1, ...settings } });
  t.after(gateway.stop);
  return gateway;
}

test('everything is 503: readiness, log and counts give the reason', async (t) => {
  if (!ownServerOnly(t)) return;
  const account = { user: 'other', password: 'one' };
  const gateway = await gatewayFor(t, account);
  await eventually('it is ready', async () => (await gateway.get('/readyz')).status === 200);
  await database.query("alter user other@'%' identified by 'another'");
  await endConnections(database, 'other');
  const page = tell('Everything is 503', gateway);
  await page.watch();
  await page.watch();
  assert.equal((await gateway.post('/v1/query', { sql: 'select 1' })).status, 503);
  await page.watch();
  page.end();
});

test('one client is slow: what it does, who holds the lock, and where the time went', async (t) => {
  if (!ownServerOnly(t)) return;
  const gateway = await gatewayFor(t, { access_log: 'json' });
  const holder = await database.connect();
  await holder.query('begin; update place set name = name where id = 1');
  const page = tell('One client is slow', gateway);
  const headers = { 'X-Request-ID': 'order-4711' };
  const sql = "update place set name = 'Baki' where id = 1";
  const reply = gateway.post('/v1/query', { sql }, { headers });
  reply.catch(() => undefined);
  await page.watch();
  await page.watch();
  await holder.query('rollback');
  assert.equal((await reply).status, 200);
  await page.watch();
  page.end();
});

test('memory grows: what is counted', async (t) => {
  const page = tell('Memory grows', await gatewayFor(t));
  await page.watch();
  page.end();
});

test('the start is silent: its exit status, the reason, and where it listens', async (t) => {
  const first = await startGateway({ database, settings: { workers: 1 } });
  const { host } = new URL(first.url);
  const second = createDaemon({ listen: host });
  const page = tell('The start is silent and nothing listens', first, (text) =>
    text
      .replaceAll('/etc/dbhttpd.ini', second.configPath)
      .replaceAll('/var/log/dbhttpd-world.log', second.log),
  );
  try {
    await page.run();
  } finally {
    await first.stop();
  }
  t.after(second.dispose);
  assert.equal((await second.start()).status, 0, second.readLog());
  await page.watch();
  page.end();
});

test('reads are stale: how far a replica is behind, and what a token does', async (t) => {
  if (!replicationHere(t)) return;
  const set = await startReplication({ replicas: 1 });
  t.after(set.stop);
  const [first, second] = set.servers;
  assert.ok(first !== undefined && second !== undefined);
  await first.query(
    "create table place (id int primary key, name varchar(60) not null); insert into place values (1, 'old')",
  );
  await set.waitForCatchUp();
  const gateway = await startBefore(set, { reads: 'replicas' });
  t.after(gateway.stop);
  await rolesBecome(gateway, ['primary', 'replica']);
  await set.lag(second, 'stopped');
  const page = tell('Reads are stale', gateway, (text) =>
    set.servers.reduce(
      (changed, { name, host, port }) => changed.replaceAll(`${name}:3306`, `${host}:${port}`),
      text,
    ),
  );
  await page.run();
  await page.watch();
  await page.run();
  page.end();
});

test('a write may have happened: what the reply and the log say, and what a key does', async (t) => {
  await database.query("update place set name = 'Baku'");
  const gateway = await gatewayFor(t, { idempotency_table: 'request_keys' });
  // The deadline of the page must come while the statement runs, and not before its connection is open.
  await gateway.post('/v1/query', { sql: 'select 1' });
  const page = tell('A write may have happened', gateway);
  await page.run();
  await page.watch();
  await page.watch();
  await page.run();
  page.end();
});

test('every section with commands was run', (t) => {
  if (!replicationHere(t)) return;
  const headings = blocks.filter(({ language }) => language === 'sh').map(({ heading }) => heading);
  assert.deepEqual([...shown].sort(), [...new Set(headings)].sort());
});
