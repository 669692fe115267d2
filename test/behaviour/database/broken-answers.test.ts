// Answers that break MySQL's protocol while the connection stays open: the request ends at once with 502 and what became of its
// statements, and the session is never used again. The deadline would be a 504.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import {
  type FakeClient,
  type FakeMysql,
  startFakeMysql,
} from '../../support/database/fake-mysql.ts';
import {
  columnPacket,
  eofPacket,
  flags,
  lengthEncoded,
  okPacket,
  rowPacket,
  toBytes,
} from '../../support/database/mysql-answer.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

let server: FakeMysql;
let gateway: Gateway;

before(async () => {
  server = await startFakeMysql();
  gateway = await startGateway({
    database: server.target,
    settings: { workers: 1, pool: 4, statement_timeout: '10s', max_wait: '10s' },
  });
});
after(async () => {
  await gateway?.stop();
  await server?.stop();
});
afterEach(async () => {
  server.behave({});
  await eventually('the gateway is well', async () => {
    return (await gateway.dbPost({ SQL: 'select 1' })).status === 200;
  });
});

const bytes = (...values: number[]) => Buffer.from(values);
const oneColumn = [lengthEncoded(1), columnPacket(), eofPacket()];
const manyRows = Array.from({ length: 50 }, () => rowPacket(['x'.repeat(30)]));

/** By what is broken: the whole answer. */
const answers: Readonly<Record<string, Buffer>> = {
  'an OK with the number of a later packet': toBytes([okPacket()], 9),
  'an OK with the number of the command': toBytes([okPacket()], 0),
  'an empty packet': toBytes([bytes()]),
  'an OK of one byte': toBytes([bytes(0)]),
  'an OK without warnings': toBytes([okPacket().subarray(0, 5)]),
  'an error of one byte': toBytes([bytes(0xff)]),
  'an error with half a number': toBytes([bytes(0xff, 1)]),
  'an end of rows in place of a result': toBytes([eofPacket()]),
  'half a number of columns': toBytes([bytes(0xfc, 1)]),
  'a number of columns with something behind it': toBytes([bytes(1, 2, 3)]),
  'a result without columns': toBytes([bytes(0xfc, 0, 0)]),
  'a question for a local file': toBytes([bytes(0xfb, 0x61)]),
  'a packet of 10 MB in place of a header': bytes(0xff, 0xff, 0x9f, 1, 0),
  'an empty packet in place of a column': toBytes([lengthEncoded(1), bytes()]),
  'an end in place of the only column': toBytes([lengthEncoded(1), eofPacket()]),
  'an end in place of the second column': toBytes([lengthEncoded(2), columnPacket(), eofPacket()]),
  'an OK in place of a column': toBytes([lengthEncoded(1), okPacket()]),
  'a row in place of a column': toBytes([lengthEncoded(1), rowPacket(['abc', 'd'])]),
  'half a column': toBytes([lengthEncoded(1), columnPacket().subarray(0, 12)]),
  'a column without its type': toBytes([lengthEncoded(1), columnPacket().subarray(0, -8)]),
  'a column whose name is longer than its packet': toBytes([
    lengthEncoded(1),
    Buffer.concat([bytes(3), Buffer.from('def'), bytes(200), Buffer.alloc(30)]),
  ]),
  'a column of 128 KiB': Buffer.concat([toBytes([lengthEncoded(1)]), bytes(0, 0, 2, 2, 3)]),
  'an error of one byte in place of a column': toBytes([lengthEncoded(1), bytes(0xff)]),
  'a row in place of the end of the columns': toBytes([
    lengthEncoded(1),
    columnPacket(),
    rowPacket(['a']),
  ]),
  'a column too many': toBytes([lengthEncoded(1), columnPacket(), columnPacket()]),
  'an end of columns of one byte': toBytes([lengthEncoded(1), columnPacket(), bytes(0xfe)]),
  'an empty packet in place of a row': toBytes([...oneColumn, bytes()]),
  'an end of rows of one byte': toBytes([...oneColumn, bytes(0xfe)]),
  'an error of one byte in place of a row': toBytes([...oneColumn, bytes(0xff)]),
  'a cell that is longer than its row': toBytes([...oneColumn, bytes(9, 0x61)]),
  'a cell with half a length': toBytes([...oneColumn, bytes(0xfc, 1)]),
  'a cell of 2^64 - 1 bytes': toBytes([...oneColumn, Buffer.alloc(9, 0xff).fill(0xfe, 0, 1)]),
  'a row with a cell too many': toBytes([...oneColumn, rowPacket(['a', 'b'])]),
  'a row with a cell too few': toBytes([
    lengthEncoded(2),
    columnPacket({ name: 'a' }),
    columnPacket({ name: 'b' }),
    eofPacket(),
    rowPacket(['a']),
  ]),
  'a broken row after fifty others': toBytes([...oneColumn, ...manyRows, bytes(9, 0x61)]),
  'a wrong number after fifty rows': Buffer.concat([
    toBytes([...oneColumn, ...manyRows]),
    toBytes([eofPacket()], 3),
  ]),
  'half an OK after an OK that announces more': toBytes([
    okPacket(1, 2, flags.autocommit | flags.more),
    bytes(0),
  ]),
};

type Seen = {
  readonly code?: string;
  readonly outcome?: string;
  readonly CODE?: string;
  readonly OUTCOME?: string;
};

/** Status, code and outcome of a reply, in whichever format it reports them. */
const seenOf = (status: number, text: string) => {
  const { code, outcome, CODE, OUTCOME } = JSON.parse(text.trim().split('\n').at(-1) ?? '') as Seen;
  return `${status} ${code ?? CODE} ${outcome ?? OUTCOME}`;
};

/** By the kind of request: how it asks. */
const kinds: Readonly<Record<string, (sql: string) => Promise<string>>> = {
  '/db': (sql) => db({ SQL: sql }),
  'a write': (sql) => db({ SQL: `update t set a = '${sql}'` }),
  '/v1/query': (sql) => query({ sql }),
  'rows as objects': (sql) => query({ sql, rows: 'object' }),
  'lines of JSON': (sql) => query({ sql }, 'application/x-ndjson'),
  CSV: (sql) => query({ sql }, 'text/csv'),
  'a batch': (sql) => post('/v1/batch', { statements: [{ sql }] }),
};

async function post(path: string, body: object, accept?: string): Promise<string> {
  const headers = accept === undefined ? {} : { Accept: accept };
  const { status, text } = await gateway.post(path, body, { headers });
  return seenOf(status, text);
}

const db = (body: object) => post('/db', body);
const query = (body: object, accept?: string) => post('/v1/query', body, accept);

/** From now on statements that contain `select bad` get this answer; returns the connections that were asked. */
function breakWith(answer: Buffer): FakeClient[] {
  const asked: FakeClient[] = [];
  server.behave({
    answer: (client, statement) => {
      if (!statement.includes('select bad')) return false;
      asked.push(client);
      client.socket.write(answer);
      return true;
    },
  });
  return asked;
}

for (const [kind, ask] of Object.entries(kinds)) {
  test(`${kind}: a broken answer is 502 and unknown at once, and its session is gone`, async () => {
    for (const [what, answer] of Object.entries(answers)) {
      const asked = breakWith(answer);
      assert.equal(await ask('select bad'), '502 CONNECTION_LOST unknown', what);
      assert.equal(asked.length, 1, what);
      await eventually('the session is gone', () => asked[0]?.socket.closed);
    }
  });
}

test('a step of a held transaction: a broken answer ends the transaction at once', async () => {
  for (const [what, answer] of Object.entries(answers)) {
    const begun = await gateway.post('/v1/transaction', {});
    const { transaction } = begun.json<{ transaction: string }>();
    assert.equal(begun.status, 201, begun.text);
    breakWith(answer);
    const seen = await query({ sql: 'select bad', transaction });
    assert.equal(seen, '502 CONNECTION_LOST unknown', what);
    const next = await query({ sql: 'select 1', transaction });
    assert.match(next, /^409 TRANSACTION_ENDED /, what);
    server.behave({});
  }
});

test('a reply that has begun is reset at once', async () => {
  const rows = Array.from({ length: 2000 }, () => rowPacket(['x'.repeat(100)]));
  const broken = [bytes(9, 0x61), bytes(), bytes(0xfe), bytes(0xff)];
  for (const packet of broken) {
    const asked = breakWith(toBytes([...oneColumn, ...rows, packet]));
    await assert.rejects(query({ sql: 'select bad' }), { code: 'ECONNRESET' });
    await eventually('the session is gone', () => asked[0]?.socket.closed);
  }
});
