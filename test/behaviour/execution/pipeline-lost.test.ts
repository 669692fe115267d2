// The pipeline's connection is lost, or the database hangs, with several reads in flight: each has its right outcome.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { type FaultProxy, startFaultProxy } from '../../support/database/fault-proxy.ts';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { outcomeOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { enterPipeline } from '../../support/pipeline.ts';
import { readMetric } from '../../support/scrape.ts';
import { askAtOnce } from './support/at-once.ts';

const external = process.env.DBHTTPD_TEST_MYSQL !== undefined;
const read = (id: number) => `select id, v from t where id = ${id}`;
const rowOf = (id: number) => [[id, id * 3]];

let database: Database;
let proxy: FaultProxy;
let gateway: Gateway;

before(async () => {
  database = await startDatabase(external ? {} : { own: true });
  await database.query(`
    create table t (id int primary key, v int);
    insert into t with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
      select n, n * 3 from c;
    insert into t select id + 900, (id + 900) * 3 from t;
    insert into t select id + 1800, (id + 1800) * 3 from t`);
  proxy = await startFaultProxy({ host: database.host, port: database.port });
  const target = { ...database, host: proxy.host, port: proxy.port };
  gateway = await startGateway({ database: target, settings: { workers: 1, pool: 4 } });
});
after(async () => {
  await gateway?.stop();
  await proxy?.stop();
  await database.stop();
});

const timesSeen = (id: number) => proxy.statements.filter((sql) => sql === read(id)).length;

const readAtOnce = (ids: readonly number[], from = gateway) =>
  askAtOnce(
    from,
    ids.map((id) => ({ SQL: read(id) })),
  );

/** Reads that ran a second time because they were slow in the pipeline, as any may be on a busy machine. */
const reruns = () => readMetric(gateway, 'dbhttpd_pipeline_reruns_total');

/**
 * Plays a round until none of its reads was slow in the pipeline, and checks that one: a slow read may be sent twice, a lost one never. The
 * round gets other ids each time.
 */
async function playUndisturbed(
  fromId: number,
  play: (ids: readonly number[]) => Promise<readonly ReturnType<Gateway['db']>[]>,
): Promise<{ answered: number; asked: number }> {
  for (let attempt = 0; attempt < 8; attempt += 1) {
    const ids = Array.from({ length: 40 }, (_, n) => fromId + attempt * 40 + n);
    const before = await reruns();
    const pending = await play(ids);
    await Promise.all(pending);
    if ((await reruns()) === before) {
      return { answered: await checkAll(ids, pending), asked: ids.length };
    }
  }
  throw new Error('a read was slow in every round, or was run again after its connection was lost');
}

/** Counts the reads that were answered with their row. All others must be unknown, and nothing was sent twice. */
async function checkAll(ids: readonly number[], pending: readonly ReturnType<Gateway['db']>[]) {
  let answered = 0;
  for (const [at, reply] of (await Promise.all(pending)).entries()) {
    const id = ids[at] as number;
    if (reply.status === 200) {
      assert.deepEqual(rowsOf(reply), rowOf(id));
      answered += 1;
    } else {
      assert.equal(outcomeOf(reply), '502 CONNECTION_LOST unknown');
    }
    // A statement that was written as the connection was cut may not have arrived.
    assert.ok(timesSeen(id) <= 1, `${id}: sent ${timesSeen(id)} times`);
  }
  return answered;
}

for (const how of ['reset', 'fin'] as const) {
  test(`cut (${how}) before any answer: written statements are unknown, the rest runs outside, nothing twice`, async () => {
    await enterPipeline(gateway, read(900));
    let written = 0;
    const { answered, asked } = await playUndisturbed(how === 'fin' ? 1000 : 1400, async (ids) => {
      const rule = proxy.on((sql) => ids.some((id) => sql === read(id)), { kind: 'drop-reply' });
      const pending = await readAtOnce(ids);
      await eventually('several are in flight', () => rule.hits() >= 2);
      written = rule.hits();
      rule.remove();
      proxy.cutAll(how);
      return pending;
    });
    // Between the count and the cut the other connection may have written its batch.
    assert.ok(answered <= asked - written, `${answered} answered, ${written} written`);
    assert.equal(await readMetric(gateway, 'dbhttpd_statements_running_on'), 0);
    await eventually('the log tells of it', () =>
      /connections? to the database w(as|ere) lost/.test(gateway.log()),
    );
  });
}

test('cut in the middle of the answers: answered statements have their results, the rest is unknown, nothing twice', async () => {
  let [answeredInAll, lostInAll] = [0, 0];
  for (const [round, afterBytes] of [1, 60, 200, 500, 900].entries()) {
    await enterPipeline(gateway, read(900));
    const { answered, asked } = await playUndisturbed(1800 + round * 320, async (ids) => {
      const rule = proxy.on((sql) => ids.some((id) => sql === read(id)), {
        kind: 'cut-reply',
        afterBytes,
      });
      const pending = await readAtOnce(ids);
      await Promise.all(pending);
      rule.remove();
      return pending;
    });
    answeredInAll += answered;
    lostInAll += asked - answered;
  }
  assert.ok(answeredInAll > 0 && lostInAll > 0, `${answeredInAll} answered, ${lostInAll} lost`);
});

test('a database that freezes under a busy pipeline: all is answered in its deadline, and served again after it', async (t) => {
  if (!ownServerOnly(t)) return;
  const isGivenUp = async () => (await readMetric(gateway, 'dbhttpd_pipeline_connections')) === 0;
  // Separate shapes, because a shape that has met a frozen server stays out of the pipeline for a while.
  const readAs = (shape: string) => (id: number) =>
    `select id, v as ${shape} from t where id = ${id}`;
  for (const [TIMEOUT, isOutlived, frozen, fresh] of [
    [300, true, readAs('a'), readAs('b')],
    [20_000, false, readAs('c'), readAs('d')],
  ] as const) {
    await enterPipeline(gateway, frozen(900));
    database.freeze();
    try {
      const pending = Array.from({ length: 60 }, async (_, n) => {
        const from = performance.now();
        const reply = await gateway.dbPost({ SQL: frozen(1 + n), TIMEOUT });
        if (reply.status === 200) assert.deepEqual(rowsOf(reply), rowOf(1 + n));
        else assert.ok([502, 503, 504].includes(reply.status), reply.text);
        return performance.now() - from;
      });
      if (isOutlived) {
        const longestMs = Math.max(...(await Promise.all(pending)));
        // The database is still frozen: the rest is what a busy machine may add.
        assert.ok(longestMs < TIMEOUT + 4000, `${longestMs} ms`);
      } else {
        await eventually('the pipeline gives its sessions up', isGivenUp);
        database.thaw();
        await Promise.all(pending);
      }
    } finally {
      database.thaw();
    }
    await eventually('served again', async () => {
      const reply = await gateway.dbPost({ SQL: read(1) });
      return reply.status === 200;
    });
    await enterPipeline(gateway, fresh(900));
  }
});

test('a stop with the pipeline busy: every request is answered, nothing is lost, the pidfile goes', async () => {
  const target = { ...database, host: proxy.host, port: proxy.port };
  const stopping = await startGateway({ database: target, settings: { workers: 1, pool: 4 } });
  await enterPipeline(stopping, read(900));
  const ids = Array.from({ length: 40 }, (_, n) => 1 + n);
  const replies = await readAtOnce(ids, stopping);
  const stopped = stopping.stop();
  for (const [at, reply] of (await Promise.all(replies)).entries()) {
    assert.equal(reply.status, 200, `${reply.text}\n${stopping.log()}`);
    assert.deepEqual(rowsOf(reply), rowOf(1 + at));
  }
  await stopped;
  assert.equal(existsSync(stopping.pidfile), false);
});
