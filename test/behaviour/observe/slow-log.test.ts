// Slow statements are told in the log by their shape, with what they waited and ran.
// Must not know how a digest is made.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

let database: Database;
let gateway: Gateway;

before(async () => {
  database = await startDatabase();
  gateway = await startGateway({
    database,
    settings: { slow_query: '1s', workers: 1, pool: 1 },
  });
});
after(async () => {
  await gateway.stop();
  await database.stop();
});

const lineOf = (id: string) =>
  eventually(`the line of ${id}`, () =>
    gateway
      .log()
      .split('\n')
      .find((line) => line.includes('slow statement') && line.includes(`request_id=${id} `)),
  );
const ask = (id: string, sql: string, more: object = {}) =>
  gateway.db({ SQL: sql, ...more }, { headers: { 'X-Request-ID': id } });

test('a slow statement is logged by its shape, a quick one is not', async () => {
  await ask('quick', "select 'secret'");
  const from = performance.now();
  await ask('slow', "select 'secret', sleep(?), 4711 union select 'b', 1, 2", { PARAMS: [1.1] });
  const tookMs = performance.now() - from;
  const line = await lineOf('slow');
  assert.match(line, / warn .* waited_ms=\d+ ran_ms=\d+ rows=2 outcome=ok /);
  const ranMs = Number(/ ran_ms=(\d+) /.exec(line)?.[1]);
  assert.ok(ranMs >= 1_100 && ranMs <= Math.ceil(tookMs), `${ranMs} of ${tookMs} ms`);
  assert.ok(line.endsWith('statement="select ?, sleep(?), ? union select ?"'), line);
  assert.doesNotMatch(gateway.log(), /secret|4711|request_id=quick/);
});

test('what waited long and ran quickly is no slow statement', async () => {
  await Promise.all([ask('first', 'select sleep(1.1)'), ask('second', 'select 2')]);
  await lineOf('first');
  assert.doesNotMatch(gateway.log(), /request_id=second/);
});

test('a statement killed at its deadline is logged, however short that was', async () => {
  const reply = await ask('killed', "select sleep(20), 'secret'", { TIMEOUT: 500 });
  assert.equal(reply.status, 504);
  assert.match(await lineOf('killed'), /outcome=failed statement="select sleep\(\?\), \?"$/);
  const metrics = await eventually('they are counted', async () => {
    const { text } = await gateway.get('/metrics');
    return /slow_statements_total\{[^}]*\} ([3-9])/.exec(text);
  });
  assert.ok(metrics);
});
