// The promise about a parameter in a place where no value can be: the reply names the parameter, and where the name goes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../../../src/client/client.ts';
import { useSharedGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useSharedGateway({
  prepare: async (prepared) => {
    await prepared.query('create table people (id int, name varchar(20))');
  },
});

type Problem = { readonly code: string; readonly detail: string; readonly hint?: string };
const table = () => `${database.name}.people`;

async function hintOf(sql: string, params?: unknown): Promise<string | undefined> {
  const reply = await gateway.post('/v1/query', { sql, ...(params !== undefined && { params }) });
  const { code, hint } = reply.json<Problem>();
  assert.deepEqual([reply.status, code], [422, 'ER_PARSE_ERROR'], sql);
  return hint;
}

const asName = (which: string) =>
  `${which} is a value, and MySQL wants a name or a keyword there. Write names of tables and columns, ASC and DESC into the SQL text (with dbhttpd/client: sql.id).`;

test('a parameter in the place of a name or a keyword has a hint', async () => {
  assert.equal(await hintOf('select * from ?', ['people']), asName('params[0]'));
  assert.equal(
    await hintOf('select * from :table where id = :id', { id: 1, table: 'people' }),
    asName('params["table"]'),
  );
  assert.equal(
    await hintOf(`insert into ${table()} (?) values (?)`, ['id', 'x']),
    asName('params[0]'),
  );
  assert.equal(
    await hintOf(`select * from ${table()} where name <> ? order by name ?`, ['é', 'desc']),
    asName('params[1]'),
  );
  assert.equal(
    await hintOf(`select * from ${table()} as p ?`, ['x'.repeat(200)]),
    asName('params[0]'),
  );
  assert.match(
    String(await hintOf(`select * from ${table()} limit ?`, ['10'])),
    /^params\[0\] is a string, and MySQL wants a number there, as after LIMIT: send it as a number of JSON\.$/,
  );
});

test('a placeholder without a value has a hint, and other errors have none', async () => {
  const byName = await hintOf(`select * from ${table()} where id = :id`);
  assert.equal(byName, 'The SQL text has a :name: send its value in params, an object.');
  const old = await gateway.dbPost({ SQL: `select * from ${table()} where id = ?` });
  const { HINT } = old.json<{ HINT: string }>();
  assert.equal(HINT, 'The SQL text has a ?: send its value in PARAMS, an array.');
  assert.equal(await hintOf('selct 1', []), undefined);
  assert.equal(await hintOf("select * from 'people' where id = ?", [1]), undefined);
  const missing = await gateway.post('/v1/query', { sql: 'select ? from nowhere', params: ['a'] });
  assert.equal(missing.json<Problem>().hint, undefined);
});

test('batches, /db and the client library have the same hint', async () => {
  const statements = [{ sql: 'select 1' }, { sql: 'select * from ?', params: ['people'] }];
  const batch = await gateway.post('/v1/batch', { statements });
  assert.equal(batch.json<Problem>().hint, asName('params[0]'));
  const old = await gateway.dbPost({ SQL: 'select * from ?', PARAMS: ['people'] });
  const { MYSQL_ERRNO, HINT } = old.json<{ MYSQL_ERRNO: number; HINT: string }>();
  assert.deepEqual([MYSQL_ERRNO, HINT], [1064, asName('PARAMS[0]')]);
  const error = await connect({ url: gateway.url })
    .query('select * from ?', ['people'])
    .then(
      () => null,
      (reason: Error) => reason,
    );
  assert.match(String(error?.message), /near '.+\. params\[0\] is a value, and MySQL wants a name/);
});

test('a string behind ORDER BY would sort nothing, and is refused', async () => {
  for (const sql of [
    `select * from ${table()} order by ?`,
    `select * from ${table()} ORDER\n BY ? desc limit 3`,
    `select * from (select * from ${table()} order by ?) as p`,
    `select * from ${table()} order by ?, id`,
  ]) {
    const reply = await gateway.post('/v1/query', { sql, params: ['name'] });
    const { code, detail } = reply.json<Problem>();
    assert.deepEqual([reply.status, code], [400, 'PARAMS_VALUE'], sql);
    assert.match(detail, /^params\[0\] is a string behind ORDER BY, which would sort nothing: /);
  }
  for (const [sql, param] of [
    [`select * from ${table()} order by ? = name`, 'name'],
    [`select * from ${table()} order by field(name, ?)`, 'name'],
    [`select * from ${table()} order by ? collate utf8mb4_bin, id`, 'name'],
    [`select * from ${table()} order by ?`, 1],
  ] as const) {
    const reply = await gateway.post('/v1/query', { sql, params: [param] });
    assert.equal(reply.status, 200, sql);
  }
});
