// The promise for a machine without WebAssembly: the same documents, written one row at a time, a line in the log, and a gauge.
import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { logShows } from '../../support/log-shows.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

let jitless: Gateway;
after(() => jitless?.stop());

const { gateway, database } = useGateway(
  { workers: 1 },
  {
    prepare: async (database) => {
      await database.query('create table digits (d int primary key)');
      await database.query('insert into digits values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)');
      await database.query(
        `create table many as select n, -n/7e0 as d, if(n % 3, repeat('text "\n', n % 200), null) as t,
         unhex(sha2(n, 224)) as h, b'101' as b, '2007-11-07' + interval n minute as m
         from (select x.d*100+y.d*10+z.d as n from digits x, digits y, digits z) numbers`,
      );
    },
    ready: async () => {
      // Jitless V8 has no WebAssembly.
      const env = { NODE_OPTIONS: '--jitless' };
      jitless = await startGateway({ database, settings: { workers: 1 }, env });
    },
  },
);
test('answers with the same bytes with WebAssembly and without, and reports that it is missing', async () => {
  for (const SQL of ['select * from many order by n limit 5', 'select * from many order by n']) {
    const [many, single] = await Promise.all([gateway, jitless].map(({ db }) => db({ SQL })));
    assert.equal(many?.status, 200);
    assert.ok(many?.body.equals(single?.body as Buffer), SQL);
  }
  await logShows(jitless, /warn.*rows are written without WebAssembly/);
  assert.doesNotMatch(gateway.log(), /without WebAssembly/);
  for (const [one, value] of [
    [gateway, 1],
    [jitless, 0],
  ] as const) {
    assert.equal(await readMetric(one, 'dbhttpd_webassembly_rows'), value);
  }
});
