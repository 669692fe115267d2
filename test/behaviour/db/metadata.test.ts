// The promise of DBSlayer's metadata keys: with SQL and without, in DBSlayer's order; and of SERVER.
import assert from 'node:assert/strict';
import test from 'node:test';
import { parseStrictJson } from '../../support/strict-json.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway({ workers: 1, pool: 2 }, { section: 'a.b-c' });

const keys = [
  'STAT',
  'CLIENT_INFO',
  'HOST_INFO',
  'SERVER_VERSION',
  'CLIENT_VERSION',
  'SERVER_NAME',
  'SLAYER_HELP',
] as const;
const all = Object.fromEntries(keys.map((key) => [key, true]));

type Document = Readonly<Record<string, unknown>>;

async function ask(request: object, status = 200): Promise<Document> {
  const [byGet, byPost] = [await gateway.db(request), await gateway.dbPost(request)];
  for (const reply of [byGet, byPost]) {
    assert.equal(reply.status, status, reply.text);
    assert.equal(reply.headers['content-length'], String(reply.body.length));
    parseStrictJson(reply.body);
  }
  assert.deepEqual(Object.keys(byGet.json<Document>()), Object.keys(byPost.json<Document>()));
  return byGet.json();
}

function checkAnswers(document: Document): void {
  assert.match(String(document.STAT), /Uptime: \d+ +Threads: \d+/);
  assert.match(String(document.CLIENT_INFO), /^\d+\.\d+\.\d+/);
  assert.equal(document.HOST_INFO, `${database.host} via TCP/IP`);
  assert.equal(document.SERVER_NAME, 'a.b-c');
  const [major, minor, patch] = database.version.split(/[.-]/).map(Number) as number[];
  const version = (major ?? 0) * 10000 + (minor ?? 0) * 100 + (patch ?? 0);
  assert.equal(document.SERVER_VERSION, version);
  assert.equal(typeof document.CLIENT_VERSION, 'number');
  assert.deepEqual(Object.keys(document.SLAYER_HELP as object).slice(0, 2), ['SQL', 'PARAMS']);
}

test("answers all keys without SQL, in DBSlayer's order", async () => {
  const document = await ask(all);
  assert.deepEqual(Object.keys(document), [...keys]);
  checkAnswers(document);
});

test('answers each key alone', async () => {
  for (const key of keys) assert.deepEqual(Object.keys(await ask({ [key]: true })), [key]);
});

test('answers the keys behind the result', async () => {
  const document = await ask({ ...all, SQL: 'select 1' });
  assert.deepEqual(Object.keys(document), ['RESULT', 'SERVER', ...keys]);
  checkAnswers(document);
  const several = await ask({ STAT: true, SQL: 'select 1; select 2' });
  assert.deepEqual(Object.keys(several), ['RESULT', 'SERVER', 'STAT']);
});

test('answers them behind a result that streams', async () => {
  const reply = await gateway.dbPost({ ...all, SQL: "select repeat('x', 300000)" });
  assert.equal(reply.headers['transfer-encoding'], 'chunked');
  parseStrictJson(reply.body);
  checkAnswers(reply.json());
});

test('answers false and blank as if they were not there', async () => {
  assert.deepEqual(Object.keys(await ask({ STAT: false, SQL: 'select 1' })), ['RESULT', 'SERVER']);
  assert.deepEqual(Object.keys(await ask({ STAT: true, SQL: ' ' })), ['STAT']);
  assert.equal((await ask({ STAT: false }, 400)).CODE, 'NO_SQL');
});

test("gives MySQL's error without metadata", async () => {
  const document = await ask({ SERVER_NAME: true, SQL: 'select * from nope' });
  assert.equal(document.MYSQL_ERRNO, 1146);
});

test('takes SERVER for the name of its section, and nothing else', async () => {
  assert.equal((await ask({ SERVER: 'a.b-c', SQL: 'select 1' })).SERVER, 'a.b-c');
  for (const SERVER of ['world', 'A.B-C', '', 1, null, ['a.b-c']]) {
    const document = await ask({ SERVER, SQL: 'select 1' }, 400);
    assert.deepEqual([document.CODE, document.OUTCOME], ['WRONG_SERVER', 'not_executed']);
  }
});

test('refuses keys of the wrong type, and lets unknown keys pass', async () => {
  for (const wrong of [
    { STAT: 1 },
    { SERVER_NAME: 'true' },
    { SQL: 7 },
    { SQL: 'select 1', PARAMS: 1 },
    { SQL: 'x', TIMEOUT: -1 },
    { SQL: 'x', NUMBERS: true },
    { SQL: 'x', READ_ONLY: 1 },
  ]) {
    assert.equal((await ask(wrong, 400)).CODE, 'BAD_KEY', JSON.stringify(wrong));
  }
  assert.deepEqual(Object.keys(await ask({ SQL: 'select 1', WHATEVER: [1] })), [
    'RESULT',
    'SERVER',
  ]);
});
