// The promise of UTF-8: whatever the server sends and whatever character set a request sets, the reply is valid, and
// what has a known character set says what the server itself says in UTF-8.
import assert from 'node:assert/strict';
import test from 'node:test';
import { at, JsonNumber, type JsonValue, parseStrictJson } from '../../support/strict-json.ts';
import { useGateway } from '../../support/use-gateway.ts';

let names: string[] = [];
const { gateway, database } = useGateway(
  { workers: 1 },
  {
    prepare: async (own) => {
      names = (await own.query('show character set')).map(({ Charset }) => String(Charset));
    },
    sections: { streaming: { buffer: '1KiB' } },
  },
);
/** Sections by how much of a reply they hold back. */
const [whole, streaming] = ['world', 'streaming'] as const;

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The whole document, which must be UTF-8 and JSON to the letter. */
async function ask(SQL: string, section: string = whole): Promise<JsonValue> {
  const { status, body } = await gateway.dbPost({ SQL, SERVER: section });
  assert.equal(status, 200, `${SQL}: ${body}`);
  strict.decode(body);
  return parseStrictJson(body);
}

const lastRows = async (SQL: string, result: number, section?: string) =>
  at(await ask(SQL, section), 'RESULT', result, 'ROWS') as JsonValue[][];

const hex = (text: string) => Buffer.from(text).toString('hex');

test('puts U+FFFD where text is no UTF-8, for one row and for many, whole and streamed', async () => {
  await database.query('create table plain (id int primary key, c varchar(9), b varbinary(9))');
  const values = Array.from({ length: 3000 }, (_, id) => `(${id}, null, x'61ff62')`);
  await database.query(`insert into plain values ${values}`);
  const expressions: readonly (readonly [sql: string, is: string | null])[] = [
    ["json_unquote(x'ff')", database.flavour === 'mariadb' ? '\ufffd' : null],
    ['json_unquote(point(1,1))', null],
    ["ifnull(c, unhex('61ff62'))", null],
    ['ifnull(c, convert(b using utf8mb4))', null],
    ["date_format('2020-01-01', x'ff')", null],
    ["weight_string('é' as char(3))", null],
    ["concat('é', x'ff')", null],
  ];
  for (const [sql, is] of expressions) {
    for (const section of [whole, streaming]) {
      const document = await ask(`select ${sql} v, id from plain where id < 2`, section);
      if (is !== null) assert.deepEqual(at(document, 'RESULT', 'ROWS', 0, 0), is, sql);
      const many = await ask(`select ${sql} v, id from plain`, section);
      if (document instanceof Map && document.has('MYSQL_ERRNO')) continue;
      assert.equal((at(many, 'RESULT', 'ROWS') as JsonValue[]).length, 3000, sql);
    }
  }
});

test('gives the same numbers, dates and text under every character set of results', async (t) => {
  await database.query(
    `create table kinds (i int, z int(5) zerofill, b bigint unsigned, e decimal(10,2), d double, y year, da date,
     ti time(3), bi bit(10), s set('a','b'), bl blob, js json, t varchar(20) character set utf8mb4)`,
  );
  await database.query(
    `insert into kinds values (-5, 7, 18446744073709551615, -1.5, 1e-300, 2020, '2020-01-02', '01:02:03.5', 513, 'a,b',
     x'ff00', '"Zz"', 'Zz')`,
  );
  const truth = (await lastRows('do 1; select * from kinds', 1))[0];
  assert.deepEqual(truth?.slice(0, 7), [
    new JsonNumber('-5'),
    new JsonNumber('7'),
    new JsonNumber('18446744073709551615'),
    new JsonNumber('-1.50'),
    new JsonNumber('1e-300'),
    '2020',
    '2020-01-02',
  ]);
  for (const charset of [...names.filter((name) => name !== 'binary'), 'NULL']) {
    await t.test(charset, async () => {
      const set = `set character_set_results = ${charset}`;
      assert.deepEqual((await lastRows(`${set}; select * from kinds`, 1))[0], truth);
      const [one] = await lastRows(
        `${set}; select 1, -1.5, 1e0, year('2020-01-01'), 1 union all select 2, 2, 2, 2, 2`,
        1,
      );
      const numbers = ['1', '-1.5', '1', '2020', '1'].map((digits) => new JsonNumber(digits));
      assert.deepEqual(one, numbers);
      const many = `${set}; select k.*, a.i i2 from kinds k join (select 1 i ${' union all select 2'.repeat(99)}) a`;
      for (const row of await lastRows(many, 1, streaming))
        assert.deepEqual(row.slice(0, -1), truth);
    });
  }
});

test('has the header, the text, JSON and the error of every character set in UTF-8', async (t) => {
  for (const charset of names.filter((name) => name !== 'binary')) {
    await t.test(charset, async () => {
      const [found] = await database.query(
        `select hex(convert(convert(_utf8mb4 x'${hex('éжω誠中')}' using ${charset}) using utf8mb4)) h`,
      );
      const text = Buffer.from(String(found?.h), 'hex').toString();
      const set = `set character_set_results = ${charset}`;
      const json = database.flavour === 'mysql' ? `cast('"é"' as json)` : "json_quote('é')";
      const known = text.startsWith('é') ? '"é"' : '"?"';
      const document = await ask(`${set}; select 'éжω誠中' as \`éжω誠中\`, ${json}`);
      assert.deepEqual(at(document, 'RESULT', 1, 'ROWS', 0, 0), text);
      // A character that the character set lacks becomes a question mark.
      assert.deepEqual(at(document, 'RESULT', 1, 'ROWS', 0, 1), known);
      assert.deepEqual(at(document, 'RESULT', 1, 'HEADER', 0), text);
      const failed = await ask(`${set}; select * from \`né\``);
      if (!/^(ucs2|utf16|utf16le|utf32)$/.test(charset) && text.startsWith('é')) {
        assert.match(String(at(failed, 'MYSQL_ERROR')), /né/);
      }
    });
  }
});

test("knows JSON columns' character set through several changes in one request", async () => {
  await database.query('create table documents (j json)');
  await database.query(`insert into documents values ('{"a": "é"}')`);
  const all = (await ask(
    `select j from documents; set names latin1; select j, 1 as 'Ã©' from documents;
     set character_set_results = utf16; select j from documents; set character_set_results = NULL;
     select j from documents; set names utf8mb4; select j, 1 as 'Ã©' from documents`,
  )) as Map<string, JsonValue>;
  for (const result of [0, 2, 4, 6, 8]) {
    const json = String(at(all, 'RESULT', result, 'ROWS', 0, 0));
    assert.deepEqual(JSON.parse(json), { a: 'é' }, `result ${result}`);
  }
  // In latin1 the name's four bytes are four characters, and the server returns each of them.
  assert.deepEqual(at(all, 'RESULT', 8, 'HEADER', 1), 'Ã©');
});

test('leaves nothing of it to the next request', async () => {
  await ask("set names latin1; select 'é'");
  assert.deepEqual(at(await ask("select 'é' as 'é', 1"), 'RESULT', 'HEADER', 0), 'é');
  await ask('set character_set_results = utf16le; select 1');
  assert.deepEqual(at(await ask('select 1'), 'RESULT', 'ROWS', 0, 0), new JsonNumber('1'));
});

test('gives bytes, not text, to connections without a character set', async () => {
  const rows = await lastRows("set names binary; select 'é', 1, x'ff'", 1);
  assert.deepEqual(rows, [['w6k=', new JsonNumber('1'), '/w==']]);
});

const bytes = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => (from + index).toString(16).padStart(2, '0'));
const pairs = (firsts: readonly string[], seconds: readonly string[]) =>
  firsts.flatMap((first) => seconds.map((second) => first + second));

/** All bytes, all pairs that begin beyond ASCII, EUC's triples, gb18030's four bytes as far as two say it all. */
function everyCode(): string[] {
  const decimal = bytes(0x30, 0x39);
  const four = pairs(pairs(bytes(0x81, 0x84), decimal), pairs(bytes(0x81, 0xfe), decimal));
  const letters = bytes(0xa1, 0xfe);
  return [
    ...bytes(0, 255),
    ...pairs(bytes(0x80, 255), bytes(0, 255)),
    ...pairs(['8f'], pairs(letters, letters)),
    ...four,
  ];
}

test('reads each character as the server itself converts it', async (t) => {
  await database.query('create table codes (code varbinary(4) primary key)');
  const codes = everyCode();
  for (let from = 0; from < codes.length; from += 10_000) {
    const values = codes.slice(from, from + 10_000).map((code) => `(x'${code}')`);
    await database.query(`insert into codes values ${values}`);
  }
  for (const { Charset, Maxlen } of await database.query('show character set')) {
    const charset = String(Charset);
    if (/^(utf|ucs|ascii|binary)/.test(charset)) continue;
    await t.test(charset, async () => {
      const as = `convert(code using ${charset})`;
      const where = `length(code) <= ${Maxlen} and hex(${as}) = hex(code)`;
      const said = await database.query(
        `select hex(code) c, hex(convert(${as} using utf8mb4)) h from codes where ${where}`,
      );
      const rows = await lastRows(
        `set character_set_results = NULL; select hex(code), ${as} from codes where ${where}`,
        1,
        streaming,
      );
      const read = new Map(rows.map(([code, text]) => [String(code), text]));
      let known = 0;
      for (const { c, h } of said) {
        const text = Buffer.from(String(h), 'hex').toString();
        if (text === '' || (text.includes('?') && c !== '3F')) continue;
        assert.equal(read.get(String(c)), text, `${charset} ${c}`);
        known += 1;
      }
      assert.ok(known > 100, `${charset}: ${known} characters`);
      t.diagnostic(`${charset}: ${known} characters`);
    });
  }
});
