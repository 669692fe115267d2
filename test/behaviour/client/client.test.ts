// The promises of dbhttpd/client to its caller: values, results, errors. retries.test.ts has the requests that it sends again.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import {
  type Client,
  connect,
  type DbhttpdError,
  sql,
  type Transaction,
} from '../../../src/client/client.ts';
import { type HttpFront, startHttpFront } from '../../support/http-front.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { failureOf } from './support/client-failure.ts';

const token = 'a-token-of-the-test';
const { gateway, database } = useGateway(
  { workers: 1, token },
  {
    prepare: async (database) => {
      await database.query(`
        create table account (id bigint unsigned primary key, name varchar(100), bytes varbinary(100),
          balance decimal(20,4)) engine = innodb;
        insert into account values (9007199254740993, 'Ada', x'00ff80', 12.5000), (2, null, null, null);
        create table made (id bigint auto_increment primary key, n int unique) engine = innodb;
        create procedure two() begin select 'x' as a; select 'y' as b; end`);
    },
    ready: async () => {
      front = await startHttpFront(gateway.url);
      db = connect({ url: front.url, token });
    },
  },
);
let front: HttpFront;
let db: Client;
after(() => front?.stop());

/** For MySQL an integer in the text is a BIGINT, and so its value is text. For MariaDB it is an INT. */
const literal = (value: number) => (database.flavour === 'mysql' ? String(value) : value);

/** Every field of an error but its message and its cause. */
function factsOf({ message: _message, cause: _cause, stack: _stack, ...facts }: DbhttpdError) {
  return facts;
}

test('a template: its text is SQL, its values are values', async () => {
  const id = '9007199254740993';
  const found = await db.query<{ id: string; name: string }>`
    select id, name from account where id = ${id}`;
  assert.deepEqual(found.rows, [{ id, name: 'Ada' }]);
  assert.equal(found.rowCount, 1);
  assert.equal(found.truncated, false);
  assert.equal(found.section, gateway.section);
  assert.match(found.requestId, /./);
  assert.deepEqual(
    found.columns.map(({ name, type }) => [name, type]),
    [
      ['id', 'BIGINT'],
      ['name', 'VARCHAR'],
    ],
  );
});

test('no value becomes SQL, whatever it contains', async () => {
  const hostile = [
    "' or '1'='1",
    "x'; drop table account; -- ",
    '\\',
    "\\' or 1=1 -- ",
    '?',
    ':name',
    '$' + '{1}',
    '/*! drop table account */',
    '\u0000\u001a\n\r"`',
    '名前 🙂',
  ];
  for (const value of hostile) {
    const { rows } = await db.query<{ v: string }>`select ${value} as v`;
    assert.deepEqual(rows, [{ v: value }]);
    assert.equal((await db.query`select id from account where name = ${value}`).rowCount, 0);
  }
  const list = await db.query`select id from account where name in (${hostile})`;
  assert.equal(list.rowCount, 0);
  assert.equal((await db.query('select count(*) as n from account', [])).rows[0]?.n, '2');
});

test('an imitation of a template or of a piece is refused', async () => {
  const parsed = JSON.parse('["select 1; ", ""]');
  await assert.rejects(db.query(parsed, []), TypeError);
  const looksLike = JSON.parse('{"text":"1 or 1=1","params":[]}');
  await assert.rejects(db.query`select ${looksLike}`, /parameter 1 is of type object/);
});

test('pieces of SQL nest with their values', async () => {
  const where = (name: string | null) =>
    name === null ? sql`name is null` : sql`name = ${name} and ${sql`balance > ${1}`}`;
  const found = async (name: string | null) =>
    (await db.query<{ id: string }>`select id from account where ${where(name)} limit ${1}`).rows;
  assert.deepEqual(await found('Ada'), [{ id: '9007199254740993' }]);
  assert.deepEqual(await found(null), [{ id: '2' }]);
});

test('values of every type come back as they went', async () => {
  const bytes = new Uint8Array(70_000).map((_, index) => index);
  const { rows } = await db.query<Record<string, unknown>>`
    select ${true} as yes, ${null} as nothing, ${1.5} as half, ${'text'} as text,
      ${18446744073709551615n} + 0 as big, hex(${new Uint8Array([0, 255, 128])}) as bytes,
      sha2(${bytes}, 224) = sha2(${bytes}, 224) and length(${bytes}) = ${bytes.length} as same`;
  assert.deepEqual(rows, [
    {
      yes: literal(1),
      nothing: null,
      half: '1.5',
      text: 'text',
      big: '18446744073709551615',
      bytes: '00FF80',
      same: literal(1),
    },
  ]);
  const named = await db.query('select id from account where id in (:ids) and name <=> :name', {
    ids: [2n, 9007199254740993n],
    name: null,
  });
  assert.deepEqual(named.rows, [{ id: '2' }]);
});

test('a value without a meaning in SQL is a TypeError that names the place, and nothing is sent', async () => {
  const before = front.seen.length;
  const refused: readonly (readonly [unknown, RegExp])[] = [
    [new Date(), /parameter 1 is a Date/],
    [undefined, /parameter 1 is undefined/],
    [Number.NaN, /parameter 1 is a number that is not finite/],
    [{}, /parameter 1 is of type object/],
    [[[1]], /parameter 1 is of type object/],
  ];
  for (const [value, message] of refused) {
    await assert.rejects(db.query('select ?', [value as string]), (error: Error) => {
      assert.ok(error instanceof TypeError);
      assert.match(error.message, message);
      return true;
    });
  }
  await assert.rejects(db.query('select :x', { x: undefined as never }), /parameter :x is undef/);
  assert.equal(front.seen.length, before);
});

test('an unknown option is a TypeError that names it, and nothing is sent', async () => {
  const before = front.seen.length;
  const misspelt = { readonly: true } as object;
  const named = { name: 'TypeError', message: /^"readonly" is no option.*; there are .*readOnly/ };
  await assert.rejects(db.query('delete from account', [], misspelt), named);
  assert.throws(() => db.with(misspelt), named);
  assert.throws(() => connect({ url: front.url, ...misspelt }), named);
  const tokens = { url: front.url, tokens: 'x' } as { url: string };
  assert.throws(() => connect(front.url as never), { message: /^url must be / });
  assert.throws(() => connect(tokens), { message: /^"tokens" is no option; .*\burl, token\b/ });
  await assert.rejects(db.stream('select 1', [], misspelt).next(), named);
  assert.equal(front.seen.length, before);
});

test('BIGINT is text, or a BigInt by option; rows are objects or arrays', async () => {
  const text = 'select id, balance from account where id > ?';
  const asBigInt = await db.query<{ id: bigint }>(text, [2], { bigint: 'bigint' });
  assert.deepEqual(asBigInt.rows, [{ id: 9007199254740993n, balance: '12.5000' }]);
  const arrays = await db.query<[string, string]>(text, [2], { rows: 'array' });
  assert.deepEqual(arrays.rows, [['9007199254740993', '12.5000']]);
  const both = db.with({ rows: 'array', bigint: 'bigint' });
  assert.deepEqual((await both.query`select id from account where id = ${2}`).rows, [[2n]]);
  assert.deepEqual((await both.query('select cast(null as signed) as n', [])).rows, [[null]]);
});

test('two columns of one name are no object: nothing is lost in silence', async () => {
  const error = await failureOf(db.query('select 1 as a, 2 as b, 3 as a', []));
  assert.deepEqual(
    [error.code, error.outcome, error.retryable],
    ['DUPLICATE_COLUMNS', 'unknown', false],
  );
  assert.match(error.message, /"a".*was executed/);
  const { rows } = await db.query("select 'x' as a, 'y' as a", [], { rows: 'array' });
  assert.deepEqual(rows, [['x', 'y']]);
  const strange = await db.query("select 'x' as `__proto__`, 'y' as `constructor`", []);
  assert.deepEqual(Object.entries(strange.rows[0] ?? {}), [
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ]);
});

test('a write reports its changes', async () => {
  const made = await db.query`insert into made (n) values (${1}), (${2})`;
  assert.deepEqual(
    [made.affectedRows, made.insertId, made.warnings, made.rows, made.columns],
    [2, '1', 0, [], []],
  );
  const more = await db.query('insert into made (n) values (?)', [3], { bigint: 'bigint' });
  assert.equal(more.insertId, 3n);
  assert.equal((await db.query('delete from made', [])).insertId, null);
});

test('a CALL has all its results; its first rows are the result', async () => {
  const called = await db.query<Record<string, string>>('call two()', []);
  assert.deepEqual(called.rows, [{ a: 'x' }]);
  assert.deepEqual(
    called.results.map(({ rows }) => rows),
    [[{ a: 'x' }], [{ b: 'y' }], []],
  );
});

test('warnings are listed if asked for: of a query, a batch, a transaction and a stream', async () => {
  const options = { showWarnings: true };
  const text = "select cast('x' as signed) as n";
  const expected = [
    {
      level: 'Warning',
      code: 'ER_TRUNCATED_WRONG_VALUE',
      errno: 1292,
      message: "Truncated incorrect INTEGER value: 'x'",
    },
  ];
  assert.deepEqual((await db.query(text, [], options)).warningList, expected);
  const unasked = await db.query(text, []);
  assert.deepEqual([unasked.warnings, unasked.warningList], [1, []]);
  const { results } = await db.batch([{ sql: text }, { sql: 'select 1' }], options);
  assert.deepEqual(
    results.map(({ warningList }) => warningList),
    [expected, []],
  );
  const inner = (tx: Transaction) => tx.query(text, []);
  assert.deepEqual((await db.transaction(inner, options)).warningList, expected);
  const stream = db.stream(text, [], options);
  assert.equal((await stream.next()).done, false);
  assert.deepEqual((await stream.next()).value, {
    rowCount: 1,
    truncated: false,
    warningList: expected,
  });
  await assert.rejects(db.csv(text, [], options as object).next(), TypeError);
});

test('max_rows, read_only and JSON as text are sent to the gateway', async () => {
  const cut = await db.query('select id from account', [], { maxRows: 1 });
  assert.deepEqual([cut.rowCount, cut.truncated], [1, true]);
  const refused = await failureOf(db.with({ readOnly: true }).query`delete from account`);
  assert.deepEqual([refused.code, refused.status], ['READ_ONLY', 403]);
  const late = await failureOf(db.query('select sleep(20)', [], { timeoutMs: 1000 }));
  assert.deepEqual(
    [late.code, late.status, late.outcome, late.retryable],
    ['DEADLINE_RUNNING', 504, 'failed', true],
  );
});

test("an error has every field of MySQL's, of the gateway's, and none of the request's values", async () => {
  await db.query`insert into made (id, n) values (${70}, ${70})`;
  const duplicate = await failureOf(db.query`insert into made (n) values (${70})`);
  assert.deepEqual(factsOf(duplicate), {
    name: 'DbhttpdError',
    code: 'ER_DUP_ENTRY',
    outcome: 'failed',
    retryable: false,
    errno: 1062,
    sqlstate: '23000',
    status: 409,
    requestId: duplicate.requestId,
    statement: null,
    offset: null,
    idempotencyKey: null,
    retryAfterMs: null,
  });
  assert.match(duplicate.message, /Duplicate entry '70'/);
  assert.match(String(duplicate.requestId), /./);
  const several = await failureOf(db.query('select 1; select 2', []));
  assert.deepEqual(factsOf(several), {
    ...factsOf(duplicate),
    code: 'SEVERAL_STATEMENTS',
    outcome: 'not_executed',
    errno: null,
    sqlstate: null,
    status: 400,
    requestId: several.requestId,
    offset: 10,
  });
  const stranger = await failureOf(
    connect({ url: gateway.url, token: 'wrong' }).query('select 1', []),
  );
  assert.deepEqual([stranger.code, stranger.status], ['UNAUTHORIZED', 401]);
});

test('errors contain neither the URL nor the token', () => {
  const wrong = [
    { url: 'http://user:secret@host/' },
    { url: 'secret' },
    { url: 'ftp://secret' },
    { url: 'http://host/?secret' },
    { url: 'http://host', token: 'secret\n' },
    { url: 'http://host', token: '' },
  ];
  for (const options of wrong) {
    assert.throws(
      () => connect(options),
      (error: unknown) => error instanceof TypeError && !error.message.includes('secret'),
    );
  }
});

test('a gateway may be behind a path, and under a fetch of the caller', async () => {
  const asked: string[] = [];
  const there = connect({
    url: 'https://host.example/behind/',
    token,
    fetch: (input, init) => {
      asked.push(String(input));
      return fetch(`${gateway.url}/v1/query`, init);
    },
  });
  assert.deepEqual((await there.query`select 'x' as one`).rows, [{ one: 'x' }]);
  assert.deepEqual(asked, ['https://host.example/behind/v1/query']);
});

test('a request names its section and its own id; a section that does not exist is reported', async () => {
  const { section } = gateway;
  const requestId = 'order-7/attempt=1';
  const found = await connect({ url: front.url, token, section }).query('select 1', [], {
    requestId,
  });
  assert.deepEqual([found.section, found.requestId], [section, requestId]);
  const batch = await db.batch([sql`select 1`], { section, requestId });
  assert.deepEqual([batch.section, batch.requestId], [section, requestId]);
  const elsewhere = { section: 'nowhere', requestId } as const;
  const failing = [
    db.query('select 1', [], elsewhere),
    db.batch([sql`select 1`], elsewhere),
    db.stream('select 1', [], elsewhere).next(),
    db.csv('select 1', [], elsewhere).next(),
    db.transaction(async () => 1, elsewhere),
  ];
  for (const error of await Promise.all(failing.map(failureOf))) {
    assert.deepEqual([error.code, error.requestId], ['WRONG_SERVER', requestId]);
  }
  const inside = await db.transaction(async (tx) => (await tx.query`select 1`).section, {
    section,
  });
  assert.equal(inside, section);
});

test('one row, alone or in a transaction', async () => {
  const id = '9007199254740993';
  const read = sql`name from account where id = ${id}`;
  assert.deepEqual(await db.one<{ name: string }>`select ${read}`, { name: 'Ada' });
  assert.equal(await db.maybeOne('select name from account where id = ?', [3]), null);
  const several = await failureOf(db.one('select id from account', []));
  assert.equal(several.code, 'NOT_ONE_ROW');
  const none = db.transaction((tx) => tx.one`select id from account where id = ${3}`);
  assert.equal((await failureOf(none)).code, 'NO_ROW');
});

test('MySQL takes names, lists and rows of values', async () => {
  const rows = [
    [801, 81],
    [802, 82],
    [803, sql`80 + ${3}`],
  ] as const;
  const made = await db.query`insert into ${sql.id('made')} (id, n) values ${sql.values(rows)}`;
  assert.equal(made.affectedRows, 3);
  const conditions = sql.join([sql`n = ${81}`, sql`n = ${83}`], sql` or `);
  const found = await db.query`
    select ${sql.id('n')} from made where ${conditions} ${sql.raw('order by n desc')}`;
  assert.deepEqual(found.rows, [{ n: 83 }, { n: 81 }]);
  const deleted = await db.query`delete from made where id in (${sql.join([801, 802, 803])})`;
  assert.equal(deleted.affectedRows, 3);
});

test('the package is imported by its name, in a separate process', async () => {
  const program = `
    import { connect } from 'dbhttpd/client';
    const db = connect({ url: process.env.GATEWAY, token: process.env.TOKEN });
    console.log(JSON.stringify((await db.query\`select \${'forty-two'} as answer\`).rows));`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', program],
    { env: { ...process.env, GATEWAY: gateway.url, TOKEN: token } },
  );
  assert.equal(stdout, '[{"answer":"forty-two"}]\n');
});
