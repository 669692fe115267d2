// `coalesce = on` under load, with pipelined reads: every read sees what was committed before it was requested.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { cellOf, documentOf, outcomeOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { sumOf } from '../../support/exposition.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';
import { enterPipeline } from '../../support/pipeline.ts';
import { readMetric, scrape } from '../../support/scrape.ts';
import { askAtOnce } from './support/at-once.ts';

let database: Database;
let gateway: Gateway;

before(async () => {
  database = await startDatabase();
  await database.query(`
    create table counter (id int primary key, n int); insert into counter values (1, 0);
    create table t (id int primary key, v varchar(20));
    insert into t with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
      select n, concat('v', n) from c`);
  const settings = { workers: 1, pool: 4, coalesce: 'on', max_result_bytes: 20_000 };
  gateway = await startGateway({ database, settings });
});
after(async () => {
  await gateway?.stop();
  await database.stop();
});

const coalesced = () => readMetric(gateway, 'dbhttpd_coalesced_requests_total');
/** Both at once: the pipeline gives its sessions back once they are idle for long. */
const counts = async () => {
  const samples = await scrape(gateway);
  return {
    shared: sumOf(samples, 'dbhttpd_coalesced_requests_total'),
    written: sumOf(samples, 'dbhttpd_pipeline_statements_total'),
  };
};
const point = (id: number) => `select v from t where id = ${id}`;

test('reads that would be pipelined are shared before they are written, and each has its row', async () => {
  const [different, askers] = [6, 60];
  const ids = Array.from({ length: askers }, (_, at) => 1 + (at % different));
  const askAll = async () => {
    let before = { shared: 0, written: 0 };
    const requests = ids.map((id) => ({ SQL: point(id) }));
    const replies = await askAtOnce(gateway, requests, async () => {
      await enterPipeline(gateway, point(900));
      before = await counts();
    });
    const cells = (await Promise.all(replies)).map(cellOf);
    const { shared, written } = await counts();
    return { cells, written: written - before.written, shared: shared - before.shared };
  };
  // A machine that pauses has the pipeline give its idle sessions back: then nothing is written there.
  const { cells, written, shared } = await eventually(
    'they are in the pipeline',
    async () => {
      const round = await askAll();
      return round.written > 0 && round;
    },
    { timeoutMs: 120_000 },
  );
  assert.deepEqual(
    cells,
    ids.map((id) => `v${id}`),
  );
  assert.deepEqual({ written, shared }, { written: different, shared: askers - different });
});

test('a result that max_result_bytes refuses is refused to each', async () => {
  const SQL = 'select a.id, a.v from t a join t b on b.id <= 10';
  const replies = await Promise.all(Array.from({ length: 20 }, () => gateway.dbPost({ SQL })));
  for (const reply of replies) assert.equal(outcomeOf(reply), '422 RESULT_TOO_LARGE failed');
});

/** At least this many increments; more until enough reads were shared. */
const increments = 50;
const minShared = 20;
const readers = 8;
const statements = [
  'select n from counter where id = 1',
  // Long enough that others request it meanwhile.
  'select max(n) from counter, (select sum(a.id) from t a join t b on b.id < 40) s where id = 1',
];

test('while one client counts up and others come and go, no read answers less than was acknowledged before it', async () => {
  const before = await coalesced();
  const [worker] = gateway.workers();
  let acknowledged = 0;
  let isOver = false;
  const seen = { answered: 0, late: 0 };
  const reading = Array.from({ length: readers }, async (_, reader) => {
    for (let round = reader; !isOver; round += 1) {
      const from = acknowledged;
      const isHasty = round % 7 === 0;
      const request = {
        SQL: statements[round % statements.length],
        ...(isHasty && { TIMEOUT: 3 }),
      };
      const reply = await gateway.dbPost(request);
      if (isHasty && reply.status !== 200) {
        assert.match(
          outcomeOf(reply),
          /^503 (DEADLINE_WAITING|WAITED_TOO_LONG) not_executed$|^504 DEADLINE_RUNNING failed$/,
        );
        seen.late += 1;
        continue;
      }
      const n = Number(cellOf(reply));
      assert.ok(n >= from && n <= acknowledged + 1, `${n}: asked at ${from}, now ${acknowledged}`);
      seen.answered += 1;
    }
  });
  const leaving = Array.from({ length: 4 }, async (_, client) => {
    for (let round = client; !isOver; round += 1) {
      const raw = await openRaw(gateway.port);
      const query = encodeURIComponent(
        JSON.stringify({ SQL: statements[round % statements.length] }),
      );
      raw.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      if (round % 3 === 0) await raw.anything();
      else await new Promise((resolve) => setImmediate(resolve));
      raw.reset();
    }
  });
  const counting = (async () => {
    const isEnough = async () => {
      if (acknowledged < increments || seen.answered < increments) return false;
      return acknowledged % 10 === 0 && (await coalesced()) > before + minShared;
    };
    while (!(await isEnough())) {
      const SQL = 'update counter set n = n + 1 where id = 1';
      assert.equal(documentOf(await gateway.dbPost({ SQL })).MYSQL_ERRNO, undefined);
      acknowledged += 1;
    }
  })().finally(() => {
    isOver = true;
  });
  await Promise.all([counting, ...reading, ...leaving]);
  await eventually('no request waits any more', async () => {
    return (await readMetric(gateway, 'dbhttpd_queue_length')) === 0;
  });
  assert.deepEqual(gateway.workers(), [worker]);
  assert.deepEqual(rowsOf(await gateway.dbPost({ SQL: 'select n from counter' })), [
    [acknowledged],
  ]);
});
