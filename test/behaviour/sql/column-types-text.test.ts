// The promise of text and bytes: every character, every character set and every size comes out unchanged.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test, { after, before } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { at, type JsonValue } from '../../support/strict-json.ts';

let database: Database;
let gateway: Gateway;
before(async () => {
  database = await startDatabase({ args: ['--max-allowed-packet=64M'] });
  gateway = await startGateway({ database, settings: { workers: 1 } });
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
});

async function rows(SQL: string, result?: number): Promise<JsonValue[][]> {
  const document = (await gateway.dbPost({ SQL })).exact();
  const path = result === undefined ? ['RESULT', 'ROWS'] : ['RESULT', result, 'ROWS'];
  return at(document, ...path) as JsonValue[][];
}

const hex = (text: unknown) => Buffer.from(String(text)).toString('hex').toUpperCase();

test('brings out every character of the basic plane, and of the others in samples', async () => {
  await database.query(
    'create table characters (id int primary key, v text character set utf8mb4)',
  );
  const chunks: string[] = [];
  for (let from = 0; from < 0x110000; from += from < 0x20000 ? 2048 : 0x4000) {
    if (from >= 0xd800 && from < 0xe000) continue;
    chunks.push(String.fromCodePoint(...Array.from({ length: 2048 }, (_, index) => from + index)));
  }
  await database.query(
    `insert into characters values ${chunks.map((text, id) => `(${id}, x'${hex(text)}')`)}`,
  );
  const held = await database.query('select hex(v) as h from characters order by id');
  assert.deepEqual(
    held.map(({ h }) => h),
    chunks.map(hex),
  );
  const found = await rows('select v from characters order by id');
  assert.equal(found.length, chunks.length);
  for (const [id, [text]] of found.entries()) assert.equal(text, chunks[id], `chunk ${id}`);
});

const samples: Readonly<Record<string, string>> = {
  utf8mb4: 'é誠😀',
  utf8mb3: 'é誠',
  latin1: 'é€ÿ',
  ascii: 'a~',
  gbk: '誠中',
  gb2312: '中文',
  sjis: 'ｱ誠',
  cp932: '誠①',
  ujis: '誠',
  eucjpms: '誠',
  big5: '誠中',
  euckr: '가',
  ucs2: 'é誠',
  utf16: 'é誠😀',
  utf16le: 'é誠😀',
  utf32: 'é誠😀',
  latin2: 'ąž',
  latin5: 'ğ',
  latin7: 'ž',
  cp1250: 'ž',
  cp1251: 'ж',
  cp1256: 'ج',
  cp1257: 'ž',
  cp850: 'é',
  cp852: 'ž',
  cp866: 'ж',
  koi8r: 'ж',
  koi8u: 'ї',
  greek: 'ω',
  hebrew: 'א',
  tis620: 'ก',
  macroman: 'é',
  macce: 'ž',
  armscii8: 'Բ',
  geostd8: 'ბ',
  dec8: 'é',
  hp8: 'é',
};

test('brings out columns of every character set, converted by the server', async () => {
  const known = Object.keys(samples).filter((charset) => charset !== 'utf8mb4');
  const columns = known.flatMap((charset) => [
    `${charset}_v varchar(20) character set ${charset}`,
    `${charset}_t text character set ${charset}`,
  ]);
  await database.query(`create table charsets (${columns})`);
  const values = known.flatMap((charset) => [samples[charset], samples[charset]]);
  const literals = values.map((text) => `_utf8mb4 x'${hex(text)}'`);
  await database.query(`insert into charsets values (${literals})`);
  assert.deepEqual(await rows('select * from charsets'), [values]);
});

test('brings them out unconverted by the server, too', async (t) => {
  for (const [charset, text] of Object.entries(samples)) {
    await t.test(charset, async () => {
      const sql = `select convert(_utf8mb4 x'${hex(text)}' using ${charset})`;
      assert.deepEqual(await rows(`set character_set_results=null; ${sql}`, 1), [[text]]);
    });
  }
  const [uca14] = await database
    .query("select 1 from information_schema.collations where collation_name = 'uca1400_ai_ci'")
    .catch(() => []);
  for (const charset of uca14 === undefined ? [] : ['utf8mb3', 'ucs2', 'utf16', 'utf32']) {
    await t.test(`${charset} in a collation of UCA 14.0.0`, async () => {
      const sql = `select convert(_utf8mb4 x'${hex('é誠')}' using ${charset}) collate uca1400_ai_ci`;
      assert.deepEqual(await rows(`set character_set_results=null; ${sql}`, 1), [['é誠']]);
    });
  }
});

test('brings out cells of every length at which the protocol changes its mind', async () => {
  const lengths = [
    0,
    1,
    249,
    250,
    251,
    252,
    253,
    254,
    255,
    256,
    65534,
    65535,
    65536,
    65537,
    1 << 20,
  ];
  await database.query('create table lengths (n int primary key, t longtext, b longblob)');
  for (const n of lengths) {
    await database.query(
      `insert into lengths values (${n}, left(repeat('ab"é', ${n}), ${n}), left(repeat(x'00ff22', ${n}), ${n}))`,
    );
  }
  const found = await rows('select n, t, b, n from lengths order by n');
  const truth = await database.query(
    'select sha2(t, 256) as t, sha2(b, 256) as b from lengths order by n',
  );
  const sha2 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');
  assert.deepEqual(
    found.map(([, t, b]) => ({ t: sha2(String(t)), b: sha2(Buffer.from(String(b), 'base64')) })),
    truth.map(({ t, b }) => ({ t, b })),
  );
  assert.deepEqual(
    found.map(([, t]) => [...String(t)].length),
    lengths,
  );
});

test('brings out cells of 16 MiB and more, first in their row or not', async (t) => {
  const [limit] = await database.query('select @@max_allowed_packet as bytes');
  if (Number(limit?.bytes) < 50_000_000) {
    t.skip(`max_allowed_packet of this server is ${limit?.bytes}: no row of 48 MiB passes`);
    return;
  }
  for (const length of [0xffffff - 5, 17_000_000]) {
    const sql = `select repeat('x', ${length}), 'between', repeat(x'ff', ${length})`;
    const [row] = await rows(sql);
    const [text, between, bytes] = row as string[];
    assert.equal(between, 'between');
    assert.ok(text === 'x'.repeat(length), `text of ${length}`);
    assert.ok(Buffer.from(bytes ?? '', 'base64').equals(Buffer.alloc(length, 0xff)), `${length}`);
  }
});

test('gives UTF-8 even where the server does not', async (t) => {
  if (database.flavour === 'mysql') t.diagnostic('MySQL refuses halves of surrogate pairs');
  const document = await gateway.db({ SQL: "select convert(x'61eda08062' using utf8mb4)" });
  const [[text]] = at(document.exact(), 'RESULT', 'ROWS') as [[JsonValue]];
  if (database.flavour === 'mariadb') assert.equal(text, 'a\ufffd\ufffd\ufffdb');
});
