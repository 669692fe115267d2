// The grammar of named statements: what a file means, and every fault with its line.
import assert from 'node:assert/strict';
import test from 'node:test';
import { parseFile } from '../../../../src/shared/named/parse-file.ts';
import type { NamedStatement } from '../../../../src/shared/named/statement.ts';

const withTable = { hasIdempotencyTable: true };

function parsed(text: string): readonly NamedStatement[] {
  const file = parseFile(text, 'shop.sql', withTable);
  assert.ok(file.ok, JSON.stringify(file));
  return file.statements;
}

function only(text: string): NamedStatement {
  const [statement, ...others] = parsed(text);
  assert.ok(statement !== undefined && others.length === 0);
  return statement;
}

/** The faults as `line: problem`. */
function faults(text: string, section = withTable): readonly string[] {
  const file = parseFile(text, 'shop.sql', section);
  return file.ok ? [] : file.faults.map(({ line, problem }) => `${line}: ${problem}`);
}

/** Exactly one fault, in this line, with this text in it. */
function faulty(text: string, line: number, problem: RegExp, section = withTable): void {
  const found = faults(text, section);
  assert.equal(found.length, 1, `${text}\n${found.join('\n')}`);
  assert.match(found[0] ?? '', new RegExp(`^${line}: `), text);
  assert.match(found[0] ?? '', problem, text);
}

const head = '-- name: a :many\n-- for: *\n';
const batch = '-- name: a :batch\n-- for: *\n';
const exec = '-- name: a :exec\n-- for: *\n';

const shop = `-- name: orders_of :many
-- Orders of a customer, newest first.
-- for: web, mobile
-- param customer: int = claims.customer_id
-- param status: enum(open, paid) = null
-- param sort: choice(newest: id desc | largest: total desc, id desc) = newest
-- param page_size: int(1..100) = 20
select id, status, total, created from orders
 where customer = :customer and (:status is null or status = :status) order by :sort limit :page_size;

-- name: place_order :batch
-- for: web
-- key: required
-- param id: uuid
-- param customer: int = claims.customer_id
-- param items: records(product: int, n: int(1..99); 50)
-- error OUT_OF_STOCK: 409 Something is sold out.
insert into orders(id, customer, created) values (:id, :customer, now());
insert into order_lines(order_id, product, n)
  select :id, product, n from json_table(:items, '$[*]' columns(product int path '$.product', n int path '$.n')) i;
-- expect: affected_rows = count(items) else OUT_OF_STOCK
update products p join json_table(:items, '$[*]' columns(product int path '$.product', n int path '$.n')) i
  on i.product = p.id set p.stock = p.stock - i.n where p.stock >= i.n;
-- answer
select id, created from orders where id = :id;
`;

test('reads heads, directives, parameters and steps', () => {
  const [orders, place] = parsed(shop);
  assert.ok(orders !== undefined && place !== undefined);
  assert.deepEqual(
    { ...orders, parts: orders.parts.length },
    {
      name: 'orders_of',
      kind: 'many',
      file: 'shop.sql',
      line: 1,
      description: 'Orders of a customer, newest first.',
      for: ['web', 'mobile'],
      parameters: [
        {
          name: 'customer',
          type: { kind: 'int', range: { min: null, max: null } },
          fallback: { kind: 'claim', path: ['customer_id'] },
          line: 4,
        },
        {
          name: 'status',
          type: { kind: 'enum', values: ['open', 'paid'] },
          fallback: { kind: 'null' },
          line: 5,
        },
        {
          name: 'sort',
          type: {
            kind: 'choice',
            choices: [
              { label: 'newest', sql: 'id desc' },
              { label: 'largest', sql: 'total desc, id desc' },
            ],
          },
          fallback: { kind: 'value', text: 'newest' },
          line: 6,
        },
        {
          name: 'page_size',
          type: { kind: 'int', range: { min: '1', max: '100' } },
          fallback: { kind: 'value', text: '20' },
          line: 7,
        },
      ],
      parts: 1,
      isRead: true,
      isKeyRequired: false,
      maxAgeS: null,
      errors: [],
      refusals: [],
      notNullColumns: [],
    },
  );
  const [part] = orders.parts;
  assert.deepEqual(
    part?.placeholders.map(({ start, end }) => part.sql.slice(start, end)),
    [':customer', ':status', ':status', ':sort', ':page_size'],
  );
  assert.equal(place.isKeyRequired, true);
  assert.equal(place.isRead, false);
  assert.deepEqual(
    place.parts.map(({ line, expect, isAnswer }) => [line, expect, isAnswer]),
    [
      [18, null, false],
      [19, null, false],
      [
        22,
        {
          of: 'affected_rows',
          bounds: { kind: 'count', parameter: 'items' },
          code: 'OUT_OF_STOCK',
        },
        false,
      ],
      [25, null, true],
    ],
  );
  assert.deepEqual(place.refusals, [
    { code: 'OUT_OF_STOCK', status: 409, text: 'Something is sold out.' },
  ]);
  assert.ok(Object.isFrozen(place.parts[0]?.placeholders));
  assert.deepEqual(JSON.parse(JSON.stringify([orders, place])), [orders, place]);
});

test('reads lines that end with CR LF, blank lines, and comments that are none of the grammar', () => {
  const windows = parsed(shop.replaceAll('\n', '\r\n'));
  assert.deepEqual(
    windows.map(({ name, description, for: clients, parameters }) => [
      name,
      description,
      clients,
      parameters,
    ]),
    parsed(shop).map(({ name, description, for: clients, parameters }) => [
      name,
      description,
      clients,
      parameters,
    ]),
  );
  const statement = only(`-- Copyright of the shop
# anything: here
/* -- name: old :many
   select 1; */

-- name: a :many

-- One. Note: it is slow.
-- See https://example.com/a: there.
-- for: *
/* a note */ -- and one behind it
select 1 -- first
  /* param x: int */ , '-- expect: ''x' # answer
  ;
-- The end.
`);
  assert.equal(statement.line, 6);
  assert.equal(statement.description, 'One. Note: it is slow.\nSee https://example.com/a: there.');
  assert.equal(
    statement.parts[0]?.sql,
    "select 1 -- first\n  /* param x: int */ , '-- expect: ''x'",
  );
});

test('reads every type, with ranges and defaults', () => {
  const types: [type: string, kind: string, fallback: unknown][] = [
    ['int', 'int', undefined],
    ['int(-5..)', 'int', undefined],
    ['int(..18446744073709551615) = 18446744073709551615', 'int', '18446744073709551615'],
    ['decimal(12,2) = 1.50', 'decimal', '1.50'],
    ['decimal(12, 2; 0..99.99)', 'decimal', undefined],
    ['float(-1.5..1.5) = -0.5', 'float', '-0.5'],
    ['bool = true', 'bool', 'true'],
    ["text(10) = 'it''s'", 'text', "it's"],
    ["text(/[a-z]+(, [a-z]+)*\\/\\d/, 20) = 'a, b/7'", 'text', 'a, b/7'],
    ["date('2020-02-29'..) = '2024-02-29'", 'date', '2024-02-29'],
    ["datetime = '2020-01-01T10:00'", 'datetime', '2020-01-01T10:00'],
    ["time('-01:00'..'838:59:59')", 'time', undefined],
    [`json = '{"a":[1]}'`, 'json', '{"a":[1]}'],
    ["bytes = 'YWI='", 'bytes', 'YWI='],
    [
      "uuid = '123e4567-e89b-12d3-a456-426614174000'",
      'uuid',
      '123e4567-e89b-12d3-a456-426614174000',
    ],
    ['enum(a, B-2, 3_x) = B-2', 'enum', 'B-2'],
    ['enum of orders.status = open', 'enum of', 'open'],
    ['enum of orders.status', 'enum of', undefined],
  ];
  for (const [type, kind, fallback] of types) {
    const [parameter] = only(`${head}-- param x: ${type}\nselect :x;`).parameters;
    assert.equal(parameter?.type.kind, kind, type);
    const text = parameter?.fallback.kind === 'value' ? parameter.fallback.text : undefined;
    assert.equal(text, fallback, type);
  }
  const list = only(`${head}-- param x: list(text(3); 7) = null\nselect 1 where 1 in (:x);`);
  assert.deepEqual(list.parameters[0]?.type, {
    kind: 'list',
    of: { kind: 'text', pattern: null, maxCharacters: 3 },
    maxItems: 7,
  });
  const nested = only(
    `${head}-- param x: records(a: list(decimal(5,2; 0..9); 3), b: records(c: json; 2); 4)\nselect :x;`,
  );
  assert.equal(nested.parameters[0]?.type.kind, 'records');
  const claim = only(`${head}-- param x: int = claims.'https://example.com/it''s'.id\nselect :x;`);
  assert.deepEqual(claim.parameters[0]?.fallback, {
    kind: 'claim',
    path: ["https://example.com/it's", 'id'],
  });
});

test('a choice ends at | or ) outside of brackets and quotes', () => {
  const [parameter] = only(
    `${head}-- param x: choice(a: concat(b, ')|') | c: if(a | b, 1, (2)) desc | d: '|''' ) = c\nselect 1 order by :x;`,
  ).parameters;
  assert.deepEqual(parameter?.type.kind === 'choice' ? parameter.type.choices : [], [
    { label: 'a', sql: "concat(b, ')|')" },
    { label: 'c', sql: 'if(a | b, 1, (2)) desc' },
    { label: 'd', sql: "'|'''" },
  ]);
});

test('finds a parameter only where the contract does', () => {
  const sql = (text: string) =>
    only(`${exec}-- param x: int\n${text};`).parts[0]?.placeholders.map(({ start }) => start);
  assert.deepEqual(sql('update t set a=:x'), [15]);
  assert.deepEqual(sql("update t set a='b':x"), [18]);
  assert.deepEqual(sql('update t set a=`b`+:x'), [19]);
  assert.deepEqual(sql("update t set a=':x' /* :x */ -- :x\n + (:x)"), [39]);
  assert.deepEqual(sql('update t set a=@b:=:x'), [19]);
  assert.deepEqual(sql('update t set a=/* b */:x'), [22]);
});

test('decides whether a statement only reads', () => {
  const isRead = (text: string) => only(text).isRead;
  assert.equal(isRead(`${head}select 1;`), true);
  assert.equal(isRead(`${head}with a as (select 1) select * from a;`), true);
  assert.equal(isRead(`${head}select f(1);`), true);
  assert.equal(isRead(`${head}select * from t for update;`), false);
  assert.equal(isRead(`${head}insert into t values (1) returning a;`), false);
  assert.equal(isRead(`${head}call p();`), false);
  const choice = '-- param x: choice(a: 1 | b: 1 for update) = a\n';
  assert.equal(isRead(`${head}${choice}select 1 order by :x;`), false);
  assert.equal(isRead(`${exec}update t set a = 1;`), false);
});

test('each fault has its line: heads and directives', () => {
  faulty('select 1;', 1, /before the first/);
  faulty(`\n-- for: web\n${head}select 1;`, 2, /`-- for` is before the first/);
  faulty('-- name: Orders :many\n-- for: *\nselect 1;', 1, /instead of a name of a statement/);
  faulty(`-- name: ${'a'.repeat(41)} :many\n-- for: *\nselect 1;`, 1, /instead of a name/);
  faulty('-- name: a\n-- for: *\nselect 1;', 1, /and the kind after the name/);
  faulty('-- name: a :all\n-- for: *\nselect 1;', 1, /`:all` is not a kind/);
  faulty('-- name: a :many x\n-- for: *\nselect 1;', 1, /end of the line after `name`/);
  faulty('-- name: query :many\n-- for: *\nselect 1;', 1, /tool that every agent has/);
  const key = '-- for: *\n-- param idempotency_key: text(9)\n';
  faulty(
    `-- name: a :exec\n${key}delete from t where a = :idempotency_key;`,
    3,
    /agents send the key of a write as `idempotency_key`/,
  );
  faulty('-- name: a :many\nselect 1;', 1, /`-- for: …` is missing/);
  faulty('-- name: a :many\n-- for: *', 1, /there is no SQL/);
  faulty('-- name: a :many\n-- for: *, web\nselect 1;', 2, /end of the line/);
  faulty('-- name: a :many\n-- for: web, web\nselect 1;', 2, /there twice/);
  faulty('-- name: a :many\n-- for: Web\nselect 1;', 2, /name of a client/);
  faulty(`${head}-- for: web\nselect 1;`, 3, /`-- for` is already in line 2/);
  faulty(`${head}select 1;\n${head}select 2;`, 4, /`a` is already in line 1/);
  faulty(`${exec}-- key: optional\nupdate t set a = 1;`, 3, /`required`/);
  faulty(`${head}-- key: required\nselect 1;`, 3, /for a statement that writes/);
  faulty(`${exec}-- key: required\nupdate t set a = 1;`, 1, /needs `idempotency_table`/, {
    hasIdempotencyTable: false,
  });
  faulty(`${head}-- max_age: 10\nselect 1;`, 3, /duration/);
  faulty(`${head}-- max_age: 1500ms\nselect 1;`, 3, /whole seconds/);
  faulty(`${head}-- max_age: 0s\nselect 1;`, 3, /must be from 1s/);
  faulty(`${exec}-- max_age: 5s\nupdate t set a = 1;`, 3, /only reads/);
  faulty(
    `${head}-- max_age: 5s\n-- param x: int = claims.x\nselect :x;`,
    3,
    /cannot stand beside claims/,
  );
  faulty(`${head}-- error 1062: 200 TAKEN\nselect 1;`, 3, /status from 400 to 599/);
  faulty(`${head}-- error 1062: 503 TAKEN\nselect 1;`, 3, /reports what the gateway did/);
  faulty(`${head}-- error 1062: 409 taken\nselect 1;`, 3, /a code/);
  faulty(`${head}-- error 1062: 409 A\n-- error 1062: 409 B\nselect 1;`, 4, /already in line 3/);
  faulty(`${head}-- error GONE: 409\nselect 1;`, 3, /a text is missing/);
  faulty(`${head}-- error GONE: 409 It is gone.\nselect 1;`, 3, /no `-- expect` has `else GONE`/);
  faulty(`${head}-- column a: null\nselect 1;`, 3, /`not null`/);
  faulty(`${head}-- column a: not null\n-- column a: not null\nselect 1;`, 4, /already in line 3/);
});

test('a line that looks like a directive and is none is a fault', () => {
  for (const line of [
    'expects: affected_rows = 1',
    'expect affected_rows = 1',
    'Expect: affected_rows = 1',
    'expect:affected_rows = 1',
    'parm x: int',
    'params x: int',
    'max-age: 10s',
    'ttl: 10s',
    'key required',
    'For: web',
    'columns total: not null',
    'answer: yes',
    'answer the question',
    'steps: total',
    'Name : b',
  ]) {
    faulty(`${head}-- ${line}\nselect 1;`, 3, /-- /);
  }
  faulty(`${batch}select 1;\n-- expects: row_count = 1\nselect 2;`, 4, /is `-- expect` meant/);
  faulty(`${head}select 1\n-- expects: row_count = 1\n;`, 4, /is `-- expect` meant/);
  faulty(`${head}select 1 -- parm x: int\n;`, 3, /is `-- param` meant/);
  assert.deepEqual(faults(`${head}-- Answers the question: all of them.\nselect 1;`), []);
  assert.deepEqual(faults(`${head}select 1 -- for the page: all\n, 2;`), []);
});

test('each fault has its line: types and defaults', () => {
  const bad: [type: string, problem: RegExp][] = [
    ['integer', /`integer` is not a type/],
    ['int(1..x)', /`\)` at the end of int/],
    ['int(1.5..2)', /a bound of int must be a whole number/],
    ["int('1'..)", /a bound of int/],
    ['int(9..1)', /the range of int is empty/],
    ["date('2020-02-30'..)", /a bound of date must be a date that exists/],
    ["date('2020-02-02'..'2020-02-01')", /is empty/],
    ['bool(1..)', /bool has no range/],
    ['text', /after text/],
    ['text(0)', /a number of characters from 1/],
    ['text(/(?=a)/, 5)', /not one of RE2/],
    ['text(/a/)', /a pattern/],
    ['decimal', /after decimal/],
    ['decimal(66,2)', /at most 65 digits/],
    ['decimal(5,6)', /at most 65 digits/],
    ['decimal(5,2; 0..9.999)', /a bound of decimal/],
    ['enum()', /a word/],
    ['enum(a, a)', /there twice/],
    ['enum(a) = b', /must be one of a/],
    ['enum of status', /between table and column/],
    ['choice(a: )', /is empty/],
    ['choice(a: 1 | a: 2) = a', /the label `a` is there twice/],
    ['choice(a: 1; b)', /has a ; in it/],
    ['choice(a: 1 /* x */)', /has a comment/],
    ['choice(a: 1 -- x)', /has a comment/],
    ['choice(a: /*! 1 */)', /has a comment/],
    ['choice(a: :y)', /has a placeholder/],
    ['choice(a: ?)', /has a placeholder/],
    ["choice(a: 'b)", /a quote that is not closed/],
    ['choice(a: "b")', /ANSI_QUOTES/],
    ["choice(a: 'b\\n')", /NO_BACKSLASH_ESCAPES/],
    ['choice(a: 1', /does not end with/],
    ['choice(a: 1) = b', /not a label/],
    ['choice(a: 1) = null', /never NULL/],
    ['list(int)', /after the type of the items/],
    ['list(choice(a: 1); 3)', /stands only in the SQL/],
    ['list(list(int; 3); 3)', /single values/],
    ['list(int; 3) = 1', /only be null or a claim/],
    ['records(a: int, a: int; 3)', /the field `a` is there twice/],
    ['records(a: choice(b: 1); 3)', /stands only in the SQL/],
    ['int = abc', /the default must be a whole number/],
    ["int = '5'", /the default must be/],
    ['int(1..5) = 6', /the default must be a whole number from 1 to 5/],
    ['text(3) = 5', /the default must be/],
    ["text(3) = 'abcd'", /at most 3 characters/],
    ["uuid = 'x'", /must be a UUID/],
    ["json = '{'", /must be JSON/],
    ['int = claims', /the default/],
    ['int = claims.Id', /a name of a claim/],
    ['int 5', /before the default/],
  ];
  for (const [type, problem] of bad) {
    faulty(`${head}-- param x: ${type}\nselect :x;`, 3, problem);
  }
  faulty(`${head}-- param X: int\nselect 1;`, 3, /a name of a parameter/);
  faulty(`${head}-- param x: int\n-- param x: int\nselect :x;`, 4, /already in line 3/);
});

test('each fault has its line: SQL', () => {
  const x = '-- param x: int\n';
  const bad: [text: string, line: number, problem: RegExp][] = [
    [`${head}select\n :y;`, 4, /`:y` is not declared/],
    [`${head}${x}select 1;`, 3, /`x` is not used/],
    [`${head}select ?;`, 3, /`\?` is not a placeholder/],
    [`${head}${x}select :x,\n a::int;`, 5, /`::`/],
    [`${head}${x}select :x, a:x;`, 4, /does not begin a parameter/],
    [`${head}${x}select :x, @:x;`, 4, /does not begin a parameter/],
    [`${head}${x}select :x, é:x;`, 4, /does not begin a parameter/],
    [`${head}select 1`, 3, /does not end with a semicolon/],
    [`${head}select 1;;`, 3, /no statement before/],
    [`${head}select\n(1;`, 4, /the bracket that begins here is not closed/],
    [`${head}select 1);`, 3, /closed that is not open/],
    [`${head}select 1;\nselect 2;`, 4, /only a `:batch`/],
    [`${head}select\n 'a;`, 4, /the quote that begins here is not closed/],
    [`${head}select 1 /* a;`, 3, /the comment that begins here is not closed/],
    [`${head}select\n /*! 1 */;`, 4, /executable comment/],
    [`${head}select "a";`, 3, /ANSI_QUOTES/],
    [`${head}select 'a\\n';`, 3, /NO_BACKSLASH_ESCAPES/],
    [`${head}select 1\0;`, 3, /NUL/],
    [`${head}select $a$;`, 3, /of the form/],
    [`${batch}select 1;\ncommit;`, 4, /might end the transaction/],
    [`${batch}create table t (a int);`, 3, /might end the transaction/],
    [`${batch}select 1 into outfile 'a';`, 3, /the file that it writes/],
    [`${exec}set @a = 1;`, 3, /only affects its session/],
    [`${exec}select 1;`, 3, /`:exec` is for a write/],
    [`${head}update t set a = 1;`, 3, /gives no rows/],
    [`${head}do 1;`, 3, /gives no rows/],
    [`${head}-- param y: list(int; 3)\nselect :y;`, 4, /alone in the parentheses/],
    [`${head}-- param y: list(int; 3)\nselect 1 in (1, :y);`, 4, /alone in the parentheses/],
    [`${head}-- param y: text(9)\nselect 1 order by :y desc;`, 4, /make it a choice/],
    [`${head}${x}select 1 group by :x;`, 4, /make it a choice/],
    [`${head}${x}select :x /* a */ (1);`, 4, /cannot be called/],
    [`${head}-- param y: choice(a: 1 | b: 1 into outfile 'x') = a\nselect :y;`, 4, /the file/],
  ];
  for (const [text, line, problem] of bad) faulty(text, line, problem);
  const blocks = faults(`${batch}begin not atomic\n select 1;\nend;`);
  assert.deepEqual(
    blocks.map((fault) => fault.slice(0, 2)),
    ['3:', '5:'],
  );
});

test('each fault has its line: steps', () => {
  const bad: [text: string, line: number, problem: RegExp][] = [
    [`${head}-- answer\nselect 1;`, 3, /not for `:many`/],
    [`${head}-- expect: row_count = 1\nselect 1;`, 3, /not for `:many`/],
    [`${exec}-- step: a\nupdate t set a = 1;`, 3, /not for `:exec`/],
    [`${batch}-- expect: rows = 1\nselect 1;`, 3, /affected_rows or row_count/],
    [`${batch}-- expect: row_count > 1\nselect 1;`, 3, /`=` after row_count/],
    [`${batch}-- expect: row_count = 5..1\nselect 1;`, 3, /range is empty/],
    [`${batch}-- expect: row_count = 1 else gone\nselect 1;`, 3, /a code/],
    [`${batch}-- expect: row_count = count(x)\nselect 1;`, 3, /`x` is not declared/],
    [`${batch}-- param x: int\n-- expect: row_count = count(x)\nselect :x;`, 4, /needs a list/],
    [`${batch}-- expect: row_count = 1\n-- expect: row_count = 2\nselect 1;`, 4, /once/],
    [`${batch}-- step: a\nselect 1;\n-- step: a\nselect 2;`, 5, /there twice/],
    [`${batch}-- answer\nselect 1;\n-- answer\nselect 2;`, 5, /already in line 3/],
    [`${batch}-- answer\nupdate t set a = 1;`, 3, /gives no rows/],
    [`${batch}select 1;\n-- answer`, 4, /no statement after it/],
    [`${batch}select 1;\n-- for: web\nselect 2;`, 4, /before the first token/],
    [`${batch}select\n-- param x: int\n1;`, 4, /before the first token/],
    [`${batch}select\n-- expect: row_count = 1\n1;`, 4, /before the statement that it describes/],
    [`${batch}select 1; -- expect: row_count = 1`, 3, /before the statement that it describes/],
  ];
  for (const [text, line, problem] of bad) faulty(text, line, problem);
});

test('reports every fault of a file, in the order of the lines', () => {
  const found = faults(`-- name: a :many
-- fro: web
-- param x: int(5..1)
-- param y: intt
select :x, :y, :z, ?;

-- name: b :exec
-- for: *
select 'not closed;
-- name: c :one
-- for: *
select "x", :q /* open;

-- name: d :batch
-- for: *
-- expects: row_count = 1
commit;
`);
  assert.deepEqual(
    found.map((fault) => Number.parseInt(fault, 10)),
    [1, 2, 3, 4, 5, 5, 9, 12, 16, 17],
    found.join('\n'),
  );
});

test('no quote hides the statement after it', () => {
  faulty(
    `${head}select 'a;\n-- name: b :many\n-- for: *\nselect 'b' from t;`,
    3,
    /before the next/,
  );
});

test('a file of a thousand statements is parsed in a moment', () => {
  const text = Array.from({ length: 1000 }, (_, at) =>
    shop.replace('orders_of', `o${at}`).replace('place_order', `p${at}`),
  ).join('\n');
  assert.equal(parsed(text).length, 2000);
});
