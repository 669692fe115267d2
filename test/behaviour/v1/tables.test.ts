// /v1/tables: the tables of a database, and what the server knows of one of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { workers: 1, pool: 2 },
  {
    prepare: (own) =>
      own
        .query(
          `create table customers (id int primary key, name varchar(50) not null comment 'as written');
           create table \`odd/näme\` (id int);
           create view v_names as select name from customers`,
        )
        .then(() => {}),
  },
);

type Grid = { readonly columns: string[]; readonly rows: unknown[][] };
type Table = { readonly table: string; readonly kind: string; readonly columns: Grid };

test('lists tables and views, all or those with a part of their names', async () => {
  const list = async (query = '') => {
    const reply = await gateway.get(`/v1/tables${query}`);
    assert.equal(reply.status, 200, reply.text);
    return reply.json<Grid>().rows;
  };
  const all = [
    ['customers', 'table'],
    ['odd/näme', 'table'],
    ['v_names', 'view'],
  ];
  // Once before the worker knows the names, and once after.
  assert.deepEqual(await list(), all);
  assert.deepEqual(await list('?filter=NAMES'), [['v_names', 'view']]);
  await eventually('the worker knows the names', async () => {
    const reply = await gateway.get('/v1/tables/customer');
    return reply.text.includes('Did you mean');
  });
  assert.deepEqual(await list('?section=world'), all);
});

test('describes one table, whatever its name', async () => {
  const table = async (name: string) =>
    (await gateway.get(`/v1/tables/${encodeURIComponent(name)}`)).json<Table>();
  const { kind, columns } = await table('customers');
  assert.equal(kind, 'table');
  assert.deepEqual(columns.rows, [
    ['id', database.flavour === 'mysql' ? 'int' : 'int(11)', false, null, '', ''],
    ['name', 'varchar(50)', false, null, '', 'as written'],
  ]);
  assert.equal((await table('odd/näme')).table, 'odd/näme');
  assert.equal((await table('v_names')).kind, 'view');
});

test('refuses what it does not know, and a body', async () => {
  const ask = async (path: string) => {
    const { status, json } = await gateway.get(`/v1/tables${path}`);
    return [status, json<{ code: string }>().code];
  };
  assert.deepEqual(await ask('/nothing'), [404, 'NOT_FOUND']);
  assert.deepEqual(await ask('/%ff'), [400, 'BAD_ENCODING']);
  assert.deepEqual(await ask('?part=x'), [400, 'UNKNOWN_FIELD']);
  assert.deepEqual(await ask('/customers?filter=x'), [400, 'UNKNOWN_FIELD']);
  assert.deepEqual(await ask('?section=elsewhere'), [400, 'WRONG_SERVER']);
  const headers = { 'Content-Length': '2' };
  const withBody = await gateway.request('/v1/tables', { method: 'GET', body: '{}', headers });
  assert.equal(withBody.status, 400);
});
