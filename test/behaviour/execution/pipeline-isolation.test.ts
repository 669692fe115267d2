// Reads of one connection see nothing of each other, though the first has changed the session after all, is large or fails.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellOf, documentOf, rowsOf } from '../../support/db-results.ts';
import { enterPipeline } from '../../support/pipeline.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { askAtOnce } from './support/at-once.ts';

/**
 * Each view is a separate shape, because a shape that has left the pipeline would stay out for a while. A round may miss the pipeline on a
 * machine that pauses: then there is another view.
 */
const views = 12;
/** This many rounds that met the pipeline are enough. */
const enough = 3;
const manyRows = 40_000;
const innocent = 'select v from plain where id = 1';

const { gateway, database } = useGateway(
  { workers: 1, pool: 4 },
  {
    prepare: async (own) => {
      for (const sql of [
        'create table t (id int primary key)',
        'insert into t values (1), (7)',
        'create table plain (id int primary key, v varchar(50))',
        "insert into plain values (1, 'a'), (7, 'b')",
        'create table big (id int primary key, v varchar(200))',
        `insert into big with recursive n as (select 1 as i union all select i + 1 from n where i < 400)
         select (a.i - 1) * 400 + b.i, repeat('x', 180) from n a join n b where a.i <= ${manyRows / 400}`,
        `create function moves(n int) returns int
         begin if n = 7 then set time_zone = '+05:00'; end if; return n; end`,
        'create view zones as select id, moves(id) as z from plain',
        `create function leaving(id int) returns int begin
           if id = 7 then set @left = 4711; end if; return id; end`,
        `create function fails(id int) returns int begin
           if id = 7 then set @left = 4711; signal sqlstate '45000'; end if; return id; end`,
        'create function sees() returns int return coalesce(@left, 0)',
      ]) {
        await own.query(sql);
      }
      const tables = Array.from({ length: views }, (_, n) => [
        ...['leaving', 'fails'].map(
          (what) => `create table ${view(what, n)} as select id, id as v from t`,
        ),
        ...['leaving_seeing', 'fails_seeing'].map(
          (what) => `create table ${view(what, n)} as select id, 0 as seen from t`,
        ),
      ]);
      await own.query(tables.flat().join(';'));
    },
  },
);

/** Another session has a view take a table's place: for up to a minute the gateway takes it for the table that it was. */
async function replace(name: string, columns: string): Promise<void> {
  await database.query(`drop table ${name}; create view ${name} as select id, ${columns} from t`);
}

/** Letters only: digits are no part of a shape. */
function view(what: string, n: number): string {
  return `${what}_${String.fromCharCode(0x61 + n)}`;
}

for (const [what, how] of [
  ['leaving', 'leaves a variable behind'],
  ['fails', 'leaves a variable behind and fails'],
] as const) {
  test(`a read that ${how}: those behind it on the same connection see nothing`, async (t) => {
    if (what === 'leaving' && database.flavour === 'mysql') {
      t.skip(
        'MySQL does not report what a function behind a view has left: it is unknown for a minute',
      );
      return;
    }
    const reruns = () => readMetric(gateway, 'dbhttpd_pipeline_reruns_total');
    let met = 0;
    for (let n = 0; n < views && met < enough; n += 1) {
      const rerunsBefore = await reruns();
      const seeing = view(`${what}_seeing`, n);
      const attack = `select v from ${view(what, n)} where id = 7`;
      const look = `select seen from ${seeing} where id = 7`;
      const statements = [attack, look, look, look, attack, look, look, look];
      const replies = await askAtOnce(
        gateway,
        statements.map((SQL) => ({ SQL })),
        async () => {
          await enterPipeline(gateway, `select v from ${view(what, n)} where id = 1`);
          await enterPipeline(gateway, `select seen from ${seeing} where id = 1`);
          await replace(view(what, n), `${what}(id) as v`);
          await replace(seeing, 'sees() as seen');
          // An idle pipeline gives its session back.
          await enterPipeline(gateway, innocent);
        },
      );
      for (const [at, { text: body }] of (await Promise.all(replies)).entries()) {
        if (at % 4 > 0) assert.match(body, /"ROWS":\[\[0\]\]/, `view ${n}, reply ${at}: ${body}`);
        else assert.match(body, what === 'leaving' ? /"ROWS":\[\[7\]\]/ : /"MYSQL_ERRNO":1644/);
      }
      assert.equal(cellOf(await gateway.dbPost({ SQL: look })), 0);
      if ((await reruns()) > rerunsBefore) met += 1;
    }
    assert.equal(met, enough, 'rounds that met the pipeline');
  });
}

const ask = (sql: string) => gateway.dbPost({ SQL: sql });

/** Asks often enough that the gateway takes statements of this kind for quick. */
async function makeQuick(...statements: string[]): Promise<void> {
  for (let round = 0; round < 12; round += 1) {
    for (const sql of statements) assert.equal((await ask(sql)).status, 200);
  }
}

test('a large result comes whole, though others of its kind were small', async () => {
  const sql = (count: number) => `select * from big where id <= ${count}`;
  await makeQuick(sql(2));
  assert.equal(rowsOf(await ask(sql(manyRows))).length, manyRows);
});

test('a single cell larger than the buffer comes complete, beside others', async () => {
  const sql = (count: number) => `select repeat('y', ${count})`;
  await makeQuick(sql(3));
  const sizes = Array.from({ length: 30 }, (_, at) => (at % 10 === 5 ? 3_000_000 : at));
  const replies = await Promise.all(sizes.map((size) => ask(sql(size))));
  assert.deepEqual(
    replies.map((reply) => String(cellOf(reply)).length),
    sizes,
  );
});

test('a change of the session by a read behind a view is invisible to other reads', async () => {
  const zone = 'select unix_timestamp("2020-01-01 00:00:00")';
  const change = (id: number) => `select z from zones where id = ${id}`;
  const expected = cellOf(await ask(zone));
  await makeQuick(change(1), zone);
  const statements = Array.from({ length: 60 }, (_, at) => (at % 10 === 0 ? change(7) : zone));
  const replies = await Promise.all(statements.map(ask));
  assert.deepEqual(
    replies.map(cellOf),
    statements.map((sql) => (sql === zone ? expected : 7)),
  );
});

test('a failing statement does not affect the others', async () => {
  const sql = (text: string) => `select v, extractvalue('<a/>', '${text}') from plain where id = 1`;
  await makeQuick(sql('/a'));
  const paths = Array.from({ length: 40 }, (_, at) => (at % 8 === 3 ? '/a[' : '/a'));
  const replies = await Promise.all(paths.map((path) => ask(sql(path))));
  assert.deepEqual(
    replies.map((reply) => documentOf(reply).MYSQL_ERRNO),
    paths.map((path) => (path === '/a' ? undefined : 1105)),
  );
});
