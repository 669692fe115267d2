// A server that means no good once it has let a connection in: that connection ends with what waits on it, every client
// gets JSON or a reset, memory is bounded, and the worker lives.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, afterEach, before, test } from 'node:test';
import {
  endlessPacket,
  endlessPackets,
  type FakeClient,
  type FakeMysql,
  flood,
  startFakeMysql,
} from '../../support/database/fake-mysql.ts';
import {
  columnPacket,
  eofPacket,
  errorPacket,
  flags,
  lengthEncoded,
  okPacket,
  resultSet,
  rowPacket,
  toBytes,
  wire,
} from '../../support/database/mysql-answer.ts';
import { cellOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { cases, fc } from '../../support/property.ts';
import { parseStrictJson } from '../../support/strict-json.ts';

const mebibyte = 1024 * 1024;

let server: FakeMysql;
let gateway: Gateway;
let worker: number;

before(async () => {
  server = await startFakeMysql();
  gateway = await startGateway({ database: server.target, settings: { workers: 1, pool: 4 } });
  [worker = 0] = gateway.workers();
});
after(async () => {
  await gateway?.stop();
  await server?.stop();
});
afterEach(async () => {
  server.behave({});
  await eventually('the gateway is well', async () => (await ask('select 1')).status === 200);
  assert.deepEqual(gateway.workers(), [worker]);
});

const ask = (SQL: string) => gateway.dbPost({ SQL, TIMEOUT: 3000 });

/** The result that a client sees for a statement with this answer: a status and a code, or a reset. */
async function seenAfter(
  answer: (client: FakeClient) => void,
  sql = 'select bad',
): Promise<string> {
  server.behave({
    answer: (client, statement) => {
      if (statement !== sql) return false;
      answer(client);
      return true;
    },
  });
  try {
    const reply = await ask(sql);
    parseStrictJson(reply.body);
    if (reply.status === 200) return '200';
    return `${reply.status} ${reply.json<{ CODE: string }>().CODE}`;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

/** The highest that the worker's memory gets while `work` lasts, above what it was before. */
async function growth(work: () => Promise<unknown>): Promise<number> {
  const memory = (field: string) => {
    const status = readFileSync(`/proc/${worker}/status`, 'latin1');
    return (Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024) / mebibyte;
  };
  const from = memory('VmRSS');
  // 5 makes the kernel forget the high-water mark so far (proc(5), clear_refs).
  writeFileSync(`/proc/${worker}/clear_refs`, '5');
  await work();
  return memory('VmHWM') - from;
}

const oneColumn = [lengthEncoded(1), columnPacket(), eofPacket()];
/** Endless answers: the beginning of each, and how much of it a gateway may take in. */
const floods: Readonly<Record<string, readonly [start: readonly Buffer[], Iterator<Buffer>]>> = {
  'a row': [oneColumn, endlessPacket(4)],
  'a row, announced as a thousand cells': [
    [lengthEncoded(1000), ...Array.from({ length: 1000 }, () => columnPacket()), eofPacket()],
    endlessPacket(1003),
  ],
  'column definitions': [[lengthEncoded(0xffffff)], endlessPackets(columnPacket(), 2)],
  'the header': [[], endlessPacket(1)],
};

for (const [what, [start, pieces]] of Object.entries(floods)) {
  const isWide = what === 'column definitions';
  const reported = isWide ? '422 TOO_MANY_COLUMNS' : '502 CONNECTION_LOST';
  test(`${what} without end: ${reported}, and memory is bounded`, async () => {
    const begun: FakeClient[] = [];
    const grownMb = await growth(async () => {
      const seen = await seenAfter((client) => {
        begun.push(client);
        client.socket.write(toBytes(start));
        flood(client, pieces);
      });
      assert.equal(seen, reported);
    });
    assert.ok(grownMb < 200, `${grownMb} MiB`);
    const [client] = begun;
    assert.equal(begun.length, 1);
    assert.ok(client !== undefined && client.flooded < 100 * mebibyte, `${client?.flooded} bytes`);
  });
}

test("an answer without end to the gateway's own question ends that connection", async () => {
  const busy = Array.from({ length: 4 }, () => ask('select 2'));
  await Promise.all(busy);
  for (const { socket } of server.clients) socket.destroy();
  const own = 'SELECT @@max_allowed_packet';
  let flooded: FakeClient | undefined;
  const grownMb = await growth(async () => {
    server.behave({
      answer: (client, statement) => {
        if (statement !== own) return false;
        flooded ??= client;
        client.socket.write(toBytes(oneColumn));
        flood(client, endlessPackets(rowPacket(['x'.repeat(200)]), 4));
        return true;
      },
    });
    const { status } = await ask('select 3');
    assert.equal(status, 503);
    await eventually('it ends', () => flooded?.socket.destroyed);
  });
  assert.ok(grownMb < 600, `${grownMb} MiB`);
});

test('the log names a breach of the protocol, without the bytes that were sent', async () => {
  for (const [bytes, said] of [
    [toBytes([Buffer.from('\u00fbsecret', 'latin1')]), 'the server asked for a local file'],
    [toBytes([Buffer.from([0xfc, 0, 0])]), 'the server announced a result without columns'],
    [toBytes([okPacket()], 9), 'packet 9 arrived instead of packet 1'],
    [
      toBytes([Buffer.from('\u0001'), Buffer.from('\u00f0secret', 'latin1'), eofPacket()]),
      'RangeError',
    ],
  ] as const) {
    const before_ = gateway.log().length;
    const isSaid = () => gateway.log().slice(before_).includes(said);
    const misbehave = () => seenAfter(({ socket }) => void socket.write(bytes));
    assert.equal(await misbehave(), '502 CONNECTION_LOST');
    // Connections that are lost within a second share a line, which has the reason of the first one.
    await eventually(said, async () => {
      if (!isSaid()) await misbehave();
      return isSaid();
    });
  }
  assert.ok(!gateway.log().includes('secret'));
});

/** Bytes that have been changed, cut out or put in. */
function mutated(bytes: Buffer): fc.Arbitrary<Buffer> {
  const change = fc.tuple(fc.nat(bytes.length), fc.nat(3), fc.uint8Array({ maxLength: 4 }));
  return fc.array(change, { minLength: 1, maxLength: 4 }).map((changes) => {
    let result = bytes;
    for (const [at, cut, put] of changes) {
      result = Buffer.concat([result.subarray(0, at), put, result.subarray(at + cut)]);
    }
    return result;
  });
}

test('150 answers that are not well-formed: each client gets JSON or a reset', async () => {
  const answers = [
    resultSet(
      [{}, { type: wire.long }],
      [
        ['a', '1'],
        [null, '-2'],
        ['x'.repeat(300), '3'],
      ],
    ),
    resultSet([{ type: wire.double }, { type: wire.bit }], [['1.5', Buffer.from([1])]]),
    [okPacket(1, 2)],
    [okPacket(1, 2, flags.autocommit | flags.more), okPacket()],
    [errorPacket(1064, 'wrong')],
  ].map((payloads) => toBytes(payloads));
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.oneof(...answers.map(mutated)), async (bytes) => {
      seen.add(await seenAfter(({ socket }) => void socket.end(bytes)));
    }),
    { numRuns: cases(150) },
  );
  server.behave({});
  assert.ok(seen.has('502 CONNECTION_LOST') && seen.has('200'), [...seen].join());
  const allowed = new Set(['200', '502 CONNECTION_LOST', '503 DATABASE_UNREACHABLE', 'ECONNRESET']);
  assert.deepEqual(
    [...seen].filter((one) => !allowed.has(one)),
    [],
  );
  assert.equal(cellOf(await ask('select 1')), '1');
});
