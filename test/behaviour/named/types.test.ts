// --types prints the named statements as a TypeScript module: exact for every type of column, stable, and taken by three compilers.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { type Daemon, daemonFor, type Settings } from '../../support/daemon.ts';
import { useDatabase } from '../../support/use-gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';
import { createNamedDirectory } from './support/named-directory.ts';

const database = useDatabase({
  prepare: async ({ query }) => {
    await query(`
      create table orders (id bigint unsigned primary key, customer int not null,
        status enum('open', 'it''s paid') not null, total decimal(10,2) not null, note text, doc json, raw blob,
        bits bit(3), made year, at datetime(3) not null, ratio double, place point, flags set('a','b'));
      create procedure sums() begin select 1; end`);
  },
});
const workspace = createWorkspace('types', () => {});
after(() => workspace.remove());

const shop = `-- name: touch :exec
-- for: *
-- param id: int(1..9)
update orders set total = total + :id;

-- name: orders_of :many
-- Orders of a customer, newest first.
--
-- Ends no comment: */
-- for: *
-- param customer: int = claims.customer_id
-- param status: enum of orders.status = null
-- param sort: choice(newest: id desc | largest: total desc) = newest
-- param page_size: int(1..100) = 20
select * from orders where customer = :customer and (:status is null or status = :status)
 order by :sort limit :page_size;

-- name: order :one
-- for: *
-- param id: int
-- column highest: not null
select id, (select max(o.total) from orders o) as highest from orders where id = :id;

-- name: all_types :exec
-- for: *
-- key: required
-- param d: decimal(10,2; 0..99.95) = 9.50
-- param f: float
-- param b: bool = true
-- param t: text(/[a-z]+/, 20)
-- param day: date('2026-01-01'..)
-- param doc: json = null
-- param raw: bytes
-- param l: list(int; 50)
-- param r: records(product: int, tags: list(text(10); 5); 50)
-- param deep: records(grid: list(list(text(10); 5); 5), turns: list(records(at: int(1..9); 3); 5), marks: records(on: bool; 2); 4) = null
-- error 1062: 409 ORDER_EXISTS There is such an order.
update orders set total = :d, ratio = :f, note = concat(:t, :day, :r, :deep), doc = :doc, raw = :raw where :b and id in (:l);

-- name: place :batch
-- for: *
-- param id: int
-- error GONE: 409 It is gone.
-- step: taken
-- expect: affected_rows = 1 else GONE
delete from orders where id = :id;
-- step: sum
select sum(total) as total, count(*) as n from orders;
-- answer
select 1 as one, :id as id;

-- name: sums :exec
-- for: *
call sums();
`;

/** The module of these statements on MariaDB. */
const expected = `// The named statements of a gateway, for \`connect<Named>(…)\` of dbhttpd-client.
// \`dbhttpd --types\` has written this. Do not edit it: change the statements, and write it again.

export type Named = {
  /** Fails with \`ORDER_EXISTS\` (409): There is such an order. */
  all_types: {
    kind: 'exec';
    key: 'required';
    params: {
      /** Default: true */
      b?: boolean | undefined;
      /**
       * A number with at most 8 digits before the point and 2 after it from 0 to 99.95
       * Default: 9.50
       */
      d?: number | string | bigint | undefined;
      /** A date that exists, as 2026-02-28 from 2026-01-01 */
      day: string;
      /** At most 4 objects */
      deep?: readonly { grid: readonly (readonly string[])[]; marks: readonly { on: boolean }[]; turns: readonly (readonly { at: number }[])[] }[] | null | undefined;
      doc?: string | number | boolean | bigint | object | null | undefined;
      f: number;
      /** 1 to 50 values */
      l: readonly (number | string | bigint)[];
      /** At most 50 objects */
      r: readonly { product: number | string | bigint; tags: readonly string[] }[];
      /** Bytes as padded base64 */
      raw: string | Uint8Array;
      /** A text of at most 20 characters that matches [a-z]+ */
      t: string;
    };
    row: never;
  };
  order: {
    kind: 'one';
    params: {
      id: number | string | bigint;
    };
    row: {
      /** DECIMAL(10,2) */
      highest: string;
      /** BIGINT UNSIGNED */
      id: string;
    };
    bigint: 'id';
  };
  /**
   * Orders of a customer, newest first.
   *
   * Ends no comment: *\\/
   */
  orders_of: {
    kind: 'many';
    params: {
      /**
       * A whole number from 1 to 100
       * Default: 20
       */
      page_size?: number | undefined;
      /** Default: newest */
      sort?: 'newest' | 'largest' | undefined;
      status?: 'open' | 'it\\'s paid' | null | undefined;
    };
    row: {
      /** DATETIME */
      at: string;
      /** BIT */
      bits: string | null;
      /** INT */
      customer: number;
      /** JSON */
      doc: unknown;
      /** SET */
      flags: string | null;
      /** BIGINT UNSIGNED */
      id: string;
      /** YEAR */
      made: number | null;
      /** TEXT */
      note: string | null;
      /** GEOMETRY, as base64 */
      place: string | null;
      /** DOUBLE */
      ratio: number | null;
      /** BLOB, as base64 */
      raw: string | null;
      /** ENUM */
      status: string;
      /** DECIMAL(10,2) */
      total: string;
    };
    bigint: 'id';
  };
  /** Fails with \`GONE\` (409): It is gone. */
  place: {
    kind: 'batch';
    key: 'optional';
    alone: true;
    params: {
      id: number | string | bigint;
    };
    row: {
      /** The type depends on the parameters. */
      id: unknown;
      /** INT */
      one: number;
    };
    steps: {
      sum: {
        row: {
          /** BIGINT */
          n: string;
          /** DECIMAL(32,2) */
          total: string | null;
        };
        bigint: 'n';
      };
      taken: {
        row: never;
      };
    };
  };
  sums: {
    kind: 'exec';
    key: 'optional';
    params: Record<string, never>;
    row: Record<string, unknown>;
  };
  touch: {
    kind: 'exec';
    key: 'optional';
    params: {
      /** A whole number from 1 to 9 */
      id: number;
    };
    row: never;
  };
};
`;

async function prepare(t: TestContext, text: string, more: Settings = {}): Promise<Daemon> {
  const directory = createNamedDirectory(text);
  t.after(directory.remove);
  const daemon = daemonFor(t);
  const { name, host, port, user, password } = database;
  daemon.configure({
    database: name,
    host,
    port: String(port),
    user,
    ...(password !== '' && { password }),
    named: directory.path,
    idempotency_table: 'request_keys',
    ...more,
  });
  return daemon;
}

/** Prints the module, which has no faults. */
async function printTypes(daemon: Daemon): Promise<string> {
  const { status, stdout, stderr } = await daemon.run(['--types']);
  assert.deepEqual([status, stderr], [0, '']);
  return stdout;
}

test('every type of column and parameter has the type that it has in JSON, with descriptions as comments', async (t) => {
  if (database.flavour !== 'mariadb') return t.skip('other servers have other types of literals');
  assert.equal(await printTypes(await prepare(t, shop)), expected);
});

test('the text depends neither on the order of statements nor on that of columns', async (t) => {
  const [first = '', ...others] = shop.split(/(?=^-- name: )/m);
  const turned = [...others, `\n${first}`].join('').replace('select *', 'select status, o.*');
  const [one, other] = await Promise.all([
    prepare(t, shop).then(printTypes),
    prepare(
      t,
      turned.replace(
        'select status, o.*',
        'select at, customer, bits, id, doc, flags, made, note, place, ratio, raw, total, status',
      ),
    ).then(printTypes),
  ]);
  assert.equal(one, other);
});

test('a section without an idempotency table takes no keys', async (t) => {
  const text = '-- name: touch :exec\n-- for: *\nupdate orders set total = 1;\n';
  const types = await printTypes(await prepare(t, text, { idempotency_table: null }));
  assert.doesNotMatch(types, /key:/);
});

test('faults are printed as --check prints them, and nothing else is', async (t) => {
  const bad = '-- name: bad :many\n-- for: *\nselect idd from orders;\n';
  const cases: readonly (readonly [string, Settings, number, RegExp])[] = [
    [bad, {}, 78, /all\.sql: \(line 3\): `bad` is refused by the server: /],
    ['-- name: bad :few\n', {}, 78, /all\.sql: \(line 1\): /],
    [shop, { port: '1', host: '127.0.0.1' }, 69, /\[world\].*ECONNREFUSED/],
    [shop, { named: null }, 78, /\[world\] named: is not set: there are no statements/],
    [shop, { pool: '0' }, 78, /\[world\] pool/],
  ];
  await Promise.all(
    cases.map(async ([text, more, code, message]) => {
      const daemon = await prepare(t, text, more);
      const { status, stdout, stderr } = await daemon.run(['--types']);
      assert.deepEqual([status, stdout], [code, ''], stderr);
      assert.match(stderr, message);
    }),
  );
});

/** A program that uses the statements. Each wrong line must be an error. */
const program = `
import { connect } from 'dbhttpd-client';
import type { Named } from './named.ts';

export const db = connect<Named>({ url: 'http://127.0.0.1:9090' });

export async function report(): Promise<string> {
  const { rows } = await db.named.orders_of({ status: "it's paid" });
  // @ts-expect-error there is no such status
  await db.named.orders_of({ status: 'lost' });
  // @ts-expect-error claims cannot be sent
  await db.named.orders_of({ customer: 1 });
  // @ts-expect-error a note may be null
  const note: string | undefined = rows[0]?.note;
  const made: number | null | undefined = rows[0]?.made;
  const { highest } = await db.named.order({ id: rows[0]?.id ?? 1 });
  // @ts-expect-error it needs a key
  await db.named.all_types({ day: '2026-01-01', f: 1, l: [1], r: [], raw: '', t: 'a' });
  const deep = [{ grid: [['a'], []], turns: [[{ at: 1 }]], marks: [{ on: true }] }];
  await db.named.all_types({ day: '2026-01-01', f: 1, l: [1], r: [], raw: '', t: 'a', deep }, { idempotencyKey: true });
  const { steps } = await db.named.place({ id: 1n }, { idempotencyKey: true, timeoutMs: 500 });
  const { results } = await db.batch([db.named.touch.step({ id: 1 }), db.named.order.step({ id: 1 })]);
  for await (const { total } of db.named.orders_of.stream({}, { bigint: 'bigint' })) void [total, note, made];
  return highest + (steps.sum.rows[0]?.total ?? '') + results[1].rows[0]?.id;
}
`;

/** Compiles the program beside a module, and returns what the compiler reports. */
async function compile(compiler: string, types: string, more: object = {}): Promise<string> {
  const folder = join(workspace.path, `${compiler}-${Object.keys(more).length}-${types.length}`);
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(resolve('dist/client'), join(folder, 'node_modules/dbhttpd-client'));
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: 'es2022',
    lib: ['es2022', 'dom', 'dom.iterable'],
    types: [],
    module: 'nodenext',
    allowImportingTsExtensions: true,
    noUncheckedIndexedAccess: true,
    ...more,
  };
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}\n');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
  writeFileSync(join(folder, 'named.ts'), types);
  writeFileSync(join(folder, 'main.ts'), program);
  const tsc = resolve('node_modules', compiler, 'bin/tsc');
  return await new Promise((resolved) =>
    execFile(process.execPath, [tsc, '-p', '.'], { cwd: folder }, (_error, stdout) =>
      resolved(stdout),
    ),
  );
}

const compilers = ['typescript-5.4', 'typescript-5.9', 'typescript'];

test('strict programs take the module with each compiler, and are refused what is wrong', async () => {
  const options = { exactOptionalPropertyTypes: true };
  const reports = await Promise.all(compilers.map((one) => compile(one, expected, options)));
  assert.deepEqual(reports, ['', '', '']);
});

test('a renamed column is a difference, and an error of the program that uses it', async (t) => {
  if (database.flavour !== 'mariadb') return t.skip('other servers have other types of literals');
  await database.query('alter table orders rename column made to built');
  t.after(() => database.query('alter table orders rename column built to made'));
  const renamed = await printTypes(await prepare(t, shop));
  assert.notEqual(renamed, expected);
  const errors = await compile('typescript', renamed);
  assert.match(
    errors,
    /main\.ts\(\d+,\d+\): error TS2339: Property 'made' does not exist on type/m,
  );
});
