// BIT through functions: servers send some as bytes, some as decimal digits, some as characters; a client gets the value in all of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useGateway } from '../../support/use-gateway.ts';

const widths = Array.from({ length: 64 }, (_, index) => index + 1);
const names = widths.map((width) => `b${width}`);
/** 1 and 9 are a digit, 49 is the byte of one; the others are bytes that are digits, bytes that are no ASCII, and all bits. */
const wanted = [0n, 1n, 9n, 10n, 49n, 0x3130n, 0x80ffn, 0x31323334n, 0x3132333435363738n, -1n];
const fitting = (value: bigint, width: number) => value & ((1n << BigInt(width)) - 1n);

const { gateway, database } = useGateway(
  { workers: 1, pool: 2, compress: 'off', token: 'secret', drivers: 'planetscale' },
  {
    prepare: async (server) => {
      const columns = widths.map((width) => `b${width} bit(${width})`);
      await server.query(`create table bits (k int primary key, ${columns.join(', ')})`);
      const rows = wanted.map(
        (value, k) => `(${k}, ${widths.map((width) => fitting(value, width)).join(', ')})`,
      );
      await server.query(`insert into bits values ${rows.join(', ')}`);
      const merged = names.map((name) => `coalesce(${name}) as ${name}`);
      await server.query(`create view merged as select k, ${merged.join(', ')} from bits`);
    },
  },
);

const authorization = 'Bearer secret';
const truth = wanted.map((value) => widths.map((width) => String(fitting(value, width))));

type Case = { readonly of: (name: string) => string; readonly from?: string };
const everywhere: Readonly<Record<string, Case>> = {
  coalesce: { of: (name) => `coalesce(${name})` },
  'coalesce of two': { of: (name) => `coalesce(null, ${name})` },
  ifnull: { of: (name) => `ifnull(${name}, ${name})` },
  if: { of: (name) => `if(k < 99, ${name}, null)` },
  case: { of: (name) => `case when k < 99 then ${name} end` },
  nullif: { of: (name) => `nullif(${name}, null)` },
  greatest: { of: (name) => `greatest(${name}, ${name})` },
  least: { of: (name) => `least(${name}, ${name})` },
  max: { of: (name) => `max(${name})`, from: 'bits group by k' },
  min: { of: (name) => `min(${name})`, from: 'bits group by k' },
  'a subselect': { of: (name) => `(select c.${name} from bits c where c.k = bits.k)` },
  'a window': { of: (name) => `max(${name}) over (partition by k)` },
  lag: { of: (name) => `lag(${name}, 0) over (order by k)` },
  'a derived table': {
    of: (name) => name,
    from: `(select k, ${names.map((name) => `coalesce(${name}) as ${name}`)} from bits) d`,
  },
  'a union': {
    of: (name) => name,
    from: `(select * from bits union select k, ${names.map((name) => `coalesce(${name})`)} from bits) d`,
  },
};
const onMysql: Readonly<Record<string, Case>> = {
  any_value: { of: (name) => `any_value(${name})`, from: 'bits group by k' },
};

function statement({ of, from = 'bits' }: Case, alias: (name: string) => string): string {
  return `select ${names.map((name) => `${of(name)}${alias(name)}`).join(', ')} from ${from} order by k`;
}

async function check(sql: string, what: string) {
  const db = await gateway.db({ SQL: sql }, { headers: { authorization } });
  assert.deepEqual(db.json<{ RESULT: { ROWS: unknown } }>().RESULT?.ROWS, truth, `/db ${what}`);
  const ask = (accept: string) =>
    gateway.post('/v1/query', { sql }, { headers: { accept, authorization } });
  const json = (await ask('application/json')).json<{
    rows: unknown;
    columns: { type: string }[];
  }>();
  assert.deepEqual(json.rows, truth, `/v1 ${what}`);
  const lines = (await ask('application/x-ndjson')).text.trimEnd().split('\n').slice(1, -1);
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    truth,
    `ndjson ${what}`,
  );
  const records = (await ask('text/csv')).text.trimEnd().split('\r\n').slice(1);
  assert.deepEqual(
    records.map((record) => record.split(',')),
    truth,
    `csv ${what}`,
  );
}

for (const [what, one] of Object.entries(everywhere)) {
  test(`BIT(1) to BIT(64) through ${what}: the value, in whatever form it arrives`, async () => {
    await check(
      statement(one, (name) => ` as x${name}`),
      what,
    );
    await check(
      statement(one, () => ''),
      `${what}, without alias`,
    );
  });
}

test('BIT(1) to BIT(64) through functions of MySQL alone', async (t) => {
  if (database.flavour !== 'mysql') {
    t.skip('MariaDB has none of them');
    return;
  }
  for (const [what, one] of Object.entries(onMysql))
    await check(
      statement(one, () => ''),
      what,
    );
});

test('BIT through a function in a view', async () => {
  // The test cannot see which function ran, so it leaves out the widths whose bytes may be digits.
  const certain = names.filter((_, index) => (index + 1) % 8 > 0 && (index + 1) % 8 < 6);
  const reply = await gateway.db(
    { SQL: `select ${certain} from merged order by k` },
    { headers: { authorization } },
  );
  assert.deepEqual(
    reply.json<{ RESULT: { ROWS: unknown } }>().RESULT.ROWS,
    truth.map((row) => row.filter((_, index) => certain.includes(`b${index + 1}`))),
  );
});

test('drivers get the bytes that a BIT has in a table', async () => {
  const ask = async (query: string) => {
    const reply = await gateway.post(
      '/psdb.v1alpha1.Database/Execute',
      { query, session: null },
      { headers: { authorization: `Basic ${Buffer.from('x:secret').toString('base64')}` } },
    );
    return reply.json<{ result: { rows: readonly { readonly values: string }[] } }>().result.rows;
  };
  const plain = await ask(`select ${names.join(', ')} from bits order by k`);
  assert.equal(plain.length, wanted.length);
  for (const what of ['coalesce', 'if', 'max', 'lag']) {
    assert.deepEqual(await ask(statement(everywhere[what] as Case, () => '')), plain, what);
  }
});
