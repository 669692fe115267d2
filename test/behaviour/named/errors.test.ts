// A client without `sql` sees neither MySQL's text nor names of the database's objects, in any format and at any status. The log has them.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { logShows } from '../../support/log-shows.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createNamedDirectory } from './support/named-directory.ts';

const rows = 3000;
const directory = createNamedDirectory(`
-- name: duplicate :exec
-- for: *
insert into secret_table (id, parent) values (1, 1);

-- name: mapped :exec
-- for: *
-- error 1062: 409 EMAIL_TAKEN This address is taken.
insert into secret_table (id, parent) values (1, 1);

-- name: mapped_silent :exec
-- for: *
-- error 1062: 418 TEAPOT
insert into secret_table (id, parent) values (1, 1);

-- name: orphan :exec
-- for: *
insert into secret_table (id, parent) values (2, 77);

-- name: no_table :many
-- for: *
select id from secret_missing;

-- name: no_table_one :one
-- for: *
select id from secret_missing;

-- name: writer :many
-- for: *
select secret_writes() as a;

-- name: broken_batch :batch
-- for: *
insert into secret_table (id, parent) values (5, 1);
insert into secret_table (id, parent) values (6, 77);

-- name: late :many
-- for: *
select repeat('x', 100) as filler, case when n = ${rows} then (select n from secret_many) else 1 end as late
  from secret_many order by n;
`);
const file = createClientsFile({
  outsider: { allow: 'named, batch, transaction' },
  insider: { allow: 'named, batch, transaction, sql' },
});
after(() => {
  directory.remove();
  file.remove();
});
const { gateway, database } = useGateway(
  { workers: 1, named: directory.path, clients: file.path },
  {
    prepare: async (fresh) => {
      await fresh.query(`
        create table secret_parent (id int primary key);
        create table secret_table (id int primary key, parent int,
          constraint secret_constraint foreign key (parent) references secret_parent (id));
        insert into secret_parent values (1);
        insert into secret_table values (1, 1);
        create table secret_many (n int primary key);
        insert into secret_many
          select a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 1 from ${[...'abcd']
            .map(
              (name) =>
                `(select 0 as n union select 1 union select 2 union select 3 union select 4 union select 5 union select 6 union select 7 union select 8 union select 9) ${name}`,
            )
            .join(', ')}
          where d.n < 3`);
      await fresh.query(
        'create function secret_writes() returns int begin insert into secret_parent values (99); return 1; end',
      );
    },
  },
);
const outsider = bearing(tokenOf('outsider'));
const insider = bearing(tokenOf('insider'));
const call = (name: string, headers: object, body: object = {}) =>
  gateway.post(`/v1/named/${name}`, body, { headers: { ...headers } });
const get = (name: string, headers: object) =>
  gateway.get(`/v1/named/${name}`, { headers: { ...headers } });
type Problem = Record<'code' | 'detail' | 'outcome', string> & { readonly errno?: number };
const problemOf = (reply: Reply) => reply.json<Problem>();
/** Anything that could only come from the server or its catalogue. */
const leak =
  /secret|constraint|Duplicate|entry|doesn't|exist|Subquery|foreign|PRIMARY|select|insert/;

test('an error has its code and outcome, and the log has its text under the id of the request', async () => {
  const cases = [
    ['duplicate', 409, 'ER_DUP_ENTRY'],
    ['orphan', 409, 'ER_NO_REFERENCED_ROW_2'],
    ['no_table', 422, 'ER_NO_SUCH_TABLE'],
    ['no_table_one', 422, 'ER_NO_SUCH_TABLE'],
    ['broken_batch', 409, 'ER_NO_REFERENCED_ROW_2'],
  ] as const;
  for (const [name, status, code] of cases) {
    for (const accept of ['application/json', 'application/x-ndjson, */*;q=0.1', '*/*']) {
      const id = `${name}-${accept.length}`;
      const reply = await call(name, { ...outsider, Accept: accept, 'X-Request-ID': id });
      assert.deepEqual([reply.status, problemOf(reply).code], [status, code]);
      assert.doesNotMatch(reply.text.replaceAll(id, ''), leak);
      await logShows(gateway, new RegExp(`request="?${id}"?.*named=${name}.*errno=\\d+ text=`));
    }
    const open = await call(name, insider);
    assert.deepEqual([open.status, problemOf(open).code], [status, code]);
    assert.match(problemOf(open).detail, /secret|Duplicate/);
  }
  const csv = await get('no_table.csv', outsider);
  assert.equal(csv.status, 422);
  assert.doesNotMatch(csv.text, leak);
});

test('an error of MySQL gets the status, the code and the text of the file', async () => {
  for (const headers of [outsider, insider]) {
    const taken = await call('mapped', headers);
    const { code, detail, outcome, errno } = problemOf(taken);
    assert.deepEqual(
      [taken.status, code, detail, outcome, errno],
      [409, 'EMAIL_TAKEN', 'This address is taken.', 'failed', undefined],
    );
    const silent = await call('mapped_silent', headers);
    assert.deepEqual([silent.status, problemOf(silent).code], [418, 'TEAPOT']);
    assert.doesNotMatch(silent.text, leak);
    const step = await gateway.post(
      '/v1/batch',
      { statements: [{ named: 'mapped' }] },
      {
        headers: { ...headers },
      },
    );
    assert.deepEqual([step.status, problemOf(step).code], [409, 'EMAIL_TAKEN']);
  }
});

test('steps of batches, transactions and streams tell no more', async () => {
  const batch = await gateway.post(
    '/v1/batch',
    { statements: [{ named: 'orphan' }] },
    { headers: { ...outsider } },
  );
  assert.deepEqual([batch.status, problemOf(batch).code], [409, 'ER_NO_REFERENCED_ROW_2']);
  assert.doesNotMatch(batch.text, leak);
  const warnings = { statements: [{ named: 'late' }], show_warnings: true };
  const refused = await gateway.post('/v1/batch', warnings, { headers: { ...outsider } });
  assert.equal(refused.status, 403);
  const begun = await gateway.post('/v1/transaction', {}, { headers: { ...outsider } });
  const { transaction } = begun.json<{ transaction: string }>();
  const inside = await call('duplicate', outsider, { transaction });
  assert.equal(inside.status, 409);
  assert.doesNotMatch(inside.text, leak);
});

test('a stream that fails ends with an error without its text, and CSV and JSON are cut', async () => {
  const lines = (await get('late', { ...outsider, Accept: 'application/x-ndjson' })).text
    .trim()
    .split('\n');
  const last = JSON.parse(lines.at(-1) ?? '') as { error: Problem };
  assert.ok(lines.length > 500, 'rows had left before');
  assert.equal(last.error.code, 'ER_SUBQUERY_NO_1_ROW');
  assert.doesNotMatch(lines.at(-1) ?? '', leak);
  const open = (await get('late', { ...insider, Accept: 'application/x-ndjson' })).text;
  assert.match(open, /Subquery returns more than 1 row/);
  for (const path of ['late', 'late.csv']) await assert.rejects(get(path, outsider));
});

test('a GET only reads, in two layers: the gateway and the server refuse a function that writes', async () => {
  const reply = await get('writer', outsider);
  // MySQL's own number: the statement reads as far as its text shows, and the server's transaction is READ ONLY.
  const { code, errno } = problemOf(reply);
  const own = ['ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION', 1792];
  assert.deepEqual([reply.status, code, errno], [403, ...own]);
  assert.doesNotMatch(reply.text, leak);
  assert.equal((await database.query('select * from secret_parent')).length, 1);
  assert.equal((await get('duplicate', outsider)).status, 405);
});
