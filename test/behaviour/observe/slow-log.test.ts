// The log reports slow statements by their shape, with their times of waiting and running.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { useGateway } from '../../support/use-gateway.ts';

const slowMs = 1_000;
const { gateway, database } = useGateway(
  { slow_query: `${slowMs}ms`, workers: 1, pool: 1 },
  { prepare: createGate },
);

const lineOf = (id: string) =>
  eventually(`the line of ${id}`, () =>
    gateway
      .log()
      .split('\n')
      .find((line) => line.includes('slow statement') && line.includes(`request_id=${id} `)),
  );
const ask = (id: string, sql: string, more: object = {}) =>
  gateway.db({ SQL: sql, ...more }, { headers: { 'X-Request-ID': id } });

test('a slow statement is logged by its shape, a quick one is not, nor one that waited long and ran quickly', async (t) => {
  await ask('quick', "select 'secret'");
  const gate = await closeGate(database);
  t.after(gate.open);
  const from = performance.now();
  const slow = ask('slow', `select 'secret', ?, 4711, ${gate.zero} union select 'b', 1, 2, 3`, {
    PARAMS: [7],
  });
  await ageOf('slow', 0);
  const waits = ask('waits', "select 'secret'");
  const waitedMs = await ageOf('waits', slowMs);
  await gate.open();
  await Promise.all([slow, waits]);
  const tookMs = performance.now() - from;
  const line = await lineOf('slow');
  assert.match(line, / warn .* waited_ms=\d+ ran_ms=\d+ rows=2 outcome=ok /);
  const ranMs = Number(/ ran_ms=(\d+) /.exec(line)?.[1]);
  assert.ok(ranMs >= waitedMs && ranMs <= Math.ceil(tookMs), `${ranMs} of ${tookMs} ms`);
  const shape = 'select ?, (select count(*) + sleep(?) from gate) union select ?';
  assert.ok(line.endsWith(`statement="${shape}"`), line);
  assert.doesNotMatch(gateway.log(), /secret|4711|request_id=(quick|waits)/);
});

type Running = { readonly request_id: string; readonly age_ms: number };

/** The age of a request by the gateway's own clock, as soon as it is older than this. */
async function ageOf(id: string, ms: number): Promise<number> {
  return eventually(`${id} is ${ms} ms old`, async () => {
    const { requests } = (await gateway.get('/v1/requests')).json<{ requests: Running[] }>();
    const age = requests.find(({ request_id }) => request_id === id)?.age_ms;
    return age !== undefined && age > ms && age;
  });
}

test('a statement killed at its deadline is logged, however short that was', async () => {
  const reply = await ask('killed', "select sleep(20), 'secret'", { TIMEOUT: 2_000 });
  assert.equal(reply.status, 504);
  assert.match(await lineOf('killed'), /outcome=failed statement="select sleep\(\?\), \?"$/);
  const metrics = await eventually('they are counted', async () => {
    const { text } = await gateway.get('/metrics');
    return /slow_statements_total\{[^}]*\} 2$/m.exec(text);
  });
  assert.ok(metrics);
});
