// Kills that race with completions: no innocent statement is hit, no connection lost without need.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { type Document, documentOf } from '../../support/db-results.ts';
import { openRaw } from '../../support/http.ts';
import { cases } from '../../support/property.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { workers: 1, pool: 4 },
  {
    prepare: async (own) => {
      await own.query(`
        create table t (id int primary key, v int); insert into t values (1, 0);
        create table many (n int primary key);
        insert into many with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
          select n from c`);
    },
  },
);

/** DBHTTPD_TEST_EFFORT=10 races for longer. */
const kills = cases(120);
const lanes = 4;

/**
 * A read that computes for about the requested time. It does not use SLEEP: if a KILL meets the end of SLEEP, MariaDB 10.11 itself hangs
 * for seconds (all threads in SLEEP, and the KILL, wait for one mutex).
 */
function computing(rows: number): string {
  return `select count(*) from many a, many b where a.n <= ${Math.ceil(rows)} and sha2(a.n + b.n, 224) = 'x'`;
}

/** The number of rows of the outer table that take a millisecond, on this machine and now. */
async function calibrate(): Promise<number> {
  const rows = 200;
  const from = performance.now();
  documentOf(await gateway.dbPost({ SQL: computing(rows) }));
  return rows / (performance.now() - from);
}

test('deadlines that race with completions', async () => {
  const rowsInMs = await calibrate();
  const seen = { killed: 0, finished: 0, innocent: 0 };
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      // Each lane looks for the length at which every second statement meets its deadline.
      let length = rowsInMs * 2;
      while (seen.killed < kills || seen.finished < kills / 10) {
        const SQL = computing(length);
        const reply = await gateway.dbPost({ SQL, TIMEOUT: 5 });
        if (reply.status === 200) {
          assertUnharmed(reply, SQL);
          seen.finished += 1;
          length = Math.min(length * 1.1, 900);
        } else {
          assert.ok(reply.status === 504 || reply.status === 503, reply.text);
          if (reply.status === 504) seen.killed += 1;
          length = Math.max(length / 1.1, 1);
        }
        for (const innocent of ['select 2 + 2', 'update t set v = v + 1 where id = 1']) {
          assertUnharmed(await gateway.dbPost({ SQL: innocent }), innocent);
          seen.innocent += 1;
        }
      }
    }),
  );
  const [row] = await database.query('select v from t');
  assert.equal(Number(row?.v) * 2, seen.innocent);
  await assertNoConnectionLost();
});

test('clients that leave while their reads end', async () => {
  const rowsInMs = await calibrate();
  for (let round = 0; round < kills / 2; round += 1) {
    const connection = await openRaw(gateway.port);
    const sql = encodeURIComponent(JSON.stringify({ SQL: computing(rowsInMs * (round % 5)) }));
    connection.send(`GET /db?${sql} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    if (round % 3 > 0) await gateway.dbPost({ SQL: 'select 1' });
    connection[round % 2 === 0 ? 'close' : 'reset']();
    const replies = await Promise.all(
      Array.from({ length: 4 }, () => gateway.dbPost({ SQL: 'select 3 + 3' })),
    );
    for (const reply of replies) assertUnharmed(reply, 'select 3 + 3');
  }
  await assertNoConnectionLost();
});

function assertUnharmed(reply: Reply, sql: string): void {
  const { MYSQL_ERRNO, RESULT }: Document = documentOf(reply);
  assert.equal(MYSQL_ERRNO, undefined, `${sql}: ${reply.text}`);
  assert.ok(RESULT !== undefined);
}

async function assertNoConnectionLost(): Promise<void> {
  assert.equal(await readMetric(gateway, 'dbhttpd_connects_total'), 4);
  assert.equal(await readMetric(gateway, 'dbhttpd_session_resets_total', { result: 'failed' }), 0);
  assert.equal(await readMetric(gateway, 'dbhttpd_statements_running_on'), 0);
}
