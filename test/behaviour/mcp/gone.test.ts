// An agent that goes away in the middle of a call: the statement is killed, and the connection serves the next one.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { Stats } from '../../../src/shared/observe/stats.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { eventually } from '../../support/eventually.ts';
import { openRaw } from '../../support/http.ts';
import { logShows } from '../../support/log-shows.ts';
import { endRequest, getReport } from '../../support/reports.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createAgent, headersOf, messageOf, revisions } from './support/agent.ts';

/** A second by the contract; four times as much is for a busy machine. */
const maxMs = 4000;

const { gateway, database } = useGateway(
  { workers: 1, pool: 1, mcp: 'on', access_log: 'json', slow_query: '100ms' },
  {
    prepare: (own) =>
      own
        .query(
          `create table numbers (n int primary key);
           insert into numbers with recursive c (n) as (select 1 union all select n + 1 from c where n < 1000) select n from c`,
        )
        .then(() => {}),
    // At its start the gateway itself uses the one connection: on a busy machine for longer than a call waits.
    ready: () =>
      eventually('a call is answered', () => agent.query('select 1 as n')).then(() => {}),
  },
);
const agent = createAgent(() => gateway);
const forever =
  'select count(*) from numbers a, numbers b, numbers c, numbers d where a.n > b.n + c.n';

let processlist: Processlist;
beforeEach(async () => {
  processlist = await openProcesslist(database);
});
afterEach(() => processlist?.close());

for (const revision of revisions) {
  for (const leave of ['close', 'reset'] as const) {
    test(`in revision ${revision}, a statement is gone within a second of its client (${leave})`, async () => {
      const params = { name: 'query', arguments: { sql: forever } };
      const body = JSON.stringify(messageOf(revision, 'tools/call', params));
      const headers = Object.entries(headersOf(revision, 'tools/call', params))
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join('');
      const connection = await openRaw(gateway.port);
      connection.send(
        `POST /mcp HTTP/1.1\r\nHost: localhost\r\n${headers}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
      await processlist.started(forever);
      connection[leave]();
      const tookMs = await processlist.ended(forever);
      assert.ok(tookMs < maxMs, `${tookMs} ms`);
      const { rows } = await agent.query("select 'next' as n");
      assert.deepEqual(rows, [['next']]);
    });
  }
}

test('an operator sees the tool and the client of a call and ends it, and the agent learns it', async () => {
  const failing = agent.fail(forever);
  await processlist.started(forever);
  const { requests } = (await getReport(gateway, '/v1/requests')).json<{
    requests: { id: string; shape: string; tool: string; client: string }[];
  }>();
  const running = requests.find(({ shape }) => shape.includes('numbers')) ?? assert.fail();
  assert.deepEqual([running.tool, running.client], ['query', 'default']);
  await endRequest(gateway, running.id);
  assert.equal((await failing).code, 'KILLED');
  const killed = await eventually('it is reported', async () => {
    const { errors } = (await gateway.get('/v1/stats')).json<Stats>();
    return errors.find(({ code }) => code === 'KILLED');
  });
  assert.deepEqual([killed.tool, killed.client], ['query', 'default']);
  assert.match(killed.meaning ?? '', /ended the request/);
});

test('logs and metrics name the tool', async () => {
  const count = (result: string) =>
    readMetric(gateway, 'dbhttpd_tool_calls_total', { tool: 'query', result });
  const before = [await count('ok'), await count('error')];
  await agent.query('select 6 as n');
  await agent.fail('drop table numbers');
  await agent.fail(forever, { timeout_ms: 2_000 });
  assert.deepEqual(
    [await count('ok'), await count('error')],
    [Number(before[0]) + 1, Number(before[1]) + 2],
  );
  await logShows(gateway, /slow statement .*tool=query/);
});

test('before the first call, the counts of the tools are there', async () => {
  const metrics = await getReport(gateway, '/metrics');
  assert.match(metrics.text, /dbhttpd_tool_calls_total\{[^}]*tool="describe"[^}]*\} 0/);
});
