// The promise of a statement's length: if PARAMS would make it too long, the gateway refuses it before it composes the text, on every
// endpoint.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { timesSent } from '../../support/busy-pool.ts';
import { takesAttributes } from '../../support/database/attributed.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { cellOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

const uses = (count: number) => `select ${Array.from({ length: count }, () => ':a').join(',')}`;

let database: Database;
let proxy: ProxiedDatabase;
let gateway: Gateway;
let worker: number | undefined;
let limit: number;

before(async () => {
  database = await startDatabase();
  limit = Number((await database.query('select @@max_allowed_packet as bytes'))[0]?.bytes);
  proxy = await startProxiedDatabase(database);
  const settings = { workers: 1, pool: 2, max_request_bytes: '64MiB' };
  gateway = await startGateway({ database: proxy.target, settings });
  [worker] = gateway.workers();
  await eventually('the limit is known', () => timesSent(proxy, 'SELECT @@max_allowed_packet') > 0);
});
after(async () => {
  await gateway?.stop();
  await proxy?.stop();
  await database?.stop();
});

async function refused(request: object): Promise<void> {
  const sent = proxy.statements.length;
  const reply = await gateway.dbPost(request);
  const { CODE, OUTCOME, ERROR } = reply.json<Record<string, string>>();
  assert.deepEqual([reply.status, CODE, OUTCOME], [413, 'STATEMENT_TOO_LARGE', 'not_executed']);
  assert.match(ERROR ?? '', /max_allowed_packet/);
  assert.ok(proxy.statements.slice(sent).every((sql) => !/^select (_|x)/.test(sql)));
  assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
  assert.deepEqual(gateway.workers(), [worker]);
}

test('57 kB that would become half a gigabyte are refused, and the worker lives', async () => {
  await refused({ SQL: uses(9600), PARAMS: { a: 'x'.repeat(28_000) } });
  await refused({ SQL: uses(9600), PARAMS: { a: 'x'.repeat(100_000) } });
});

test('9,600 small values are bound', async () => {
  const SQL = `select length(concat(${uses(9600).slice('select '.length)}))`;
  const reply = await gateway.dbPost({ SQL, PARAMS: { a: 'x'.repeat(100) } });
  assert.equal(cellOf(reply), 960_000);
});

test("the limit is the server's own, to the byte", async () => {
  const frame = "select length(_utf8mb4 X'')";
  // The command is a byte. On servers with query attributes, two more bytes say that there is none.
  const beside = takesAttributes(database) ? 3 : 1;
  const longest = Math.floor((limit - 1 - beside - frame.length) / 2);
  const SQL = 'select length(?)';
  assert.equal(cellOf(await gateway.dbPost({ SQL, PARAMS: ['x'.repeat(longest)] })), longest);
  await refused({ SQL, PARAMS: ['x'.repeat(longest + 1)] });
});
