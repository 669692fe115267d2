// Packet boundaries: however a network cuts the bytes, the document is the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeCommand } from '../../../../src/shared/mysql/command-packets.ts';
import { Framing, skipPackets } from '../../../../src/shared/mysql/framing.ts';
import {
  errorPacket,
  flags,
  okPacket,
  resultSet,
  toBytes,
  wire,
} from '../../../support/database/mysql-answer.ts';
import { cases, fc } from '../../../support/property.ts';
import { parseStrictJson } from '../../../support/strict-json.ts';
import { transcribe, ways } from '../../support/transcript.ts';

const mixed = toBytes([
  ...resultSet(
    [{ name: 'n', type: wire.long, charset: wire.binary }, { name: '__proto__' }],
    [
      ['1', 'é"\\\n'],
      [null, ''],
      ['-7', 'x'.repeat(252)],
      // Long enough that the bytes before it are taken as many rows at once.
      ['8', 'y'.repeat(600)],
    ],
    flags.autocommit | flags.more,
  ),
  okPacket(3, 70000, flags.autocommit | flags.more),
  ...resultSet([{ name: 'b', type: wire.blob, charset: wire.binary }], [[Buffer.from([0, 255])]]),
]);
const failing = toBytes([
  ...resultSet([{}], [['a']]).slice(0, -1),
  errorPacket(1242, 'Subquery returns more than 1 row'),
]);

const feed = (framing: Framing, chunk: Buffer) => framing.feed(chunk, 0, chunk.length);

function pieces(bytes: Buffer, ...cuts: readonly number[]): Buffer[] {
  const edges = [0, ...[...cuts].sort((left, right) => left - right), bytes.length];
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge));
}

/** Every place for a cut. Within a long run of one byte only one in fifty, because the places are equivalent. */
function places(bytes: Buffer): number[] {
  const isDull = (at: number) =>
    at % 50 !== 0 && bytes.subarray(at - 8, at + 8).every((byte) => byte === bytes[at]);
  return Array.from({ length: bytes.length + 1 }, (_, at) => at).filter(
    (at) => at < 8 || !isDull(at),
  );
}

const named = Object.entries(ways);
for (const [what, bytes] of Object.entries({ mixed, failing })) {
  const whole = transcribe([bytes]).document?.toString();
  for (const [name, way] of named) {
    test(`gives the same document wherever the bytes are cut: ${what}, ${name}`, () => {
      const read = (chunks: Buffer[]) => transcribe(chunks, { way }).document?.toString();
      assert.ok(whole !== undefined);
      parseStrictJson(whole);
      for (const cut of places(bytes)) {
        assert.equal(read(pieces(bytes, cut)), whole, `cut at ${cut}`);
      }
      const single = Array.from(bytes, (byte) => Buffer.from([byte]));
      assert.equal(read(single), whole);
      fc.assert(
        fc.property(fc.array(fc.nat(bytes.length), { maxLength: 20 }), (cuts) => {
          assert.equal(read(pieces(bytes, ...cuts)), whole);
        }),
        { numRuns: cases(60) },
      );
    });

    test(`ends no document when the bytes stop early: ${what}, ${name}`, () => {
      for (const length of places(bytes).slice(0, -1)) {
        const { document } = transcribe([bytes.subarray(0, length)], { way });
        assert.equal(document, null, `stopped after ${length}`);
      }
    });
  }
}

for (const [which, size] of [0xffffff - 5, 0xffffff - 4, 0xffffff, 2 * 0xffffff].entries()) {
  test(`puts a row with a cell of ${size} bytes together, cut anywhere near a boundary, in every arena`, () => {
    const cell = Buffer.alloc(size, 'abcdefghij');
    const bytes = toBytes(resultSet([{}, {}], [['1', cell]]));
    const begin =
      '{"RESULT":{"HEADER":["c","c"],"TYPES":["MYSQL_TYPE_VAR_STRING","MYSQL_TYPE_VAR_STRING"],"ROWS":[["1","';
    const expected = Buffer.concat([Buffer.from(begin), cell, Buffer.from('"]]},"SERVER":"s"}')]);
    const second = bytes.indexOf('abcdefghij') + 0xffffff;
    const places = [[], [second - 1], [second], [second + 3, bytes.length - 11]];
    for (const [index, [name, way]] of named.filter(([, { arena }]) => arena !== null).entries()) {
      // Each way meets every size and every cut, and each size three of the cuts.
      const cuts = places[(which + index) % places.length] ?? [];
      const { document } = transcribe(pieces(bytes, ...cuts), { way });
      assert.ok(document?.equals(expected), `${name}, cut at ${cuts}`);
    }
  });
}

test('a row whose first cell is 16 MiB long is a row, not the end of rows', () => {
  const cell = Buffer.alloc(0x1000000, 'x');
  const bytes = toBytes(resultSet([{}], [['before'], [cell], ['after']]));
  const document = transcribe(pieces(bytes, 1000, 99999, 0x1000001)).document?.toString();
  assert.equal(document?.length, 0x1000000 + 109);
  assert.match(document?.slice(-40) ?? '', /xx"\],\["after"\]\]\},"SERVER":"s"\}$/);
});

test('the continuation of a row of 16 MiB is not a row, though it looks like one', () => {
  const lookalike = Buffer.from(`\x37${'a'.repeat(55)}\x37${'b'.repeat(55)}`);
  const cell = Buffer.alloc(0x1000000 + 100, 'x');
  lookalike.copy(cell, cell.length - lookalike.length);
  const rows = [
    ['1', cell],
    ['2', 'y'.repeat(600)],
  ];
  const answer = [toBytes(resultSet([{}, {}], rows))];
  const document = transcribe(answer).document;
  assert.equal(document?.length, cell.length + 729);
  for (const [name, way] of named) {
    assert.ok(transcribe(answer, { way }).document?.equals(document as Buffer), name);
  }
});

test('a packet out of sequence ends the connection', () => {
  for (let at = 3; at < mixed.length; at += 4 + mixed.readUIntLE(at - 3, 3)) {
    for (const wrong of [1, 2, 128, 255]) {
      const bytes = Buffer.from(mixed);
      bytes[at] = ((bytes[at] as number) + wrong) & 255;
      for (const [name, way] of named) {
        const { document, lost } = transcribe([bytes], { way });
        assert.equal(document, null, name);
        assert.match(String(lost), /protocol violation/, name);
      }
    }
  }
});

test('counts the sequence beyond 255', () => {
  const rows = Array.from({ length: 700 }, (_, row) => [String(row)]);
  const columns = [{ type: wire.long, charset: wire.binary }];
  for (const [name, way] of named) {
    const { document } = transcribe([toBytes(resultSet(columns, rows))], { way });
    const read = JSON.parse(String(document)).RESULT.ROWS.flat().map(String);
    assert.deepEqual(read, rows.flat(), name);
  }
});

test('reports one violation and delivers nothing after it', () => {
  const packets: string[] = [];
  const violations: string[] = [];
  const framing = new Framing(
    (bytes, start, end) => packets.push(bytes.toString('latin1', start, end)),
    (reason) => violations.push(reason),
  );
  framing.expectedSequence = 1;
  feed(framing, Buffer.from('\x01\0\0\x01a\x01\0\0\x03b\x01\0\0\x02c', 'latin1'));
  feed(framing, Buffer.from('\x01\0\0\x02d', 'latin1'));
  assert.deepEqual(packets, ['a']);
  assert.equal(violations.length, 1);
});

test('sends a command of 16 MiB and more in packets that a server can put together', () => {
  for (const length of [0, 1, 0xffffff - 2, 0xffffff - 1, 0xffffff, 2 * 0xffffff]) {
    const text = 'q'.repeat(length);
    const bytes = encodeCommand(3, text);
    const received: Buffer[] = [];
    const framing = new Framing(
      (packet, start, end) => received.push(Buffer.from(packet.subarray(start, end))),
      assert.fail,
    );
    feed(framing, bytes);
    assert.equal(received.length, 1);
    assert.ok(received[0]?.equals(Buffer.concat([Buffer.from([3]), Buffer.from(text)])));
  }
});

test('packets are skipped in sequence, but never an error, a part of a packet, or too many', () => {
  const packets = [Buffer.from('a'), Buffer.from('bc'), errorPacket(1317, 'killed')];
  const bytes = toBytes(packets, 255);
  const skip = (most: number, cut = 0, sequence = 255) => {
    const ahead = { bytes, position: 0, end: bytes.length - cut, sequence };
    const count = skipPackets(ahead, most);
    return [count, ahead.position, ahead.sequence];
  };
  assert.deepEqual(skip(9), [2, 11, 1]);
  assert.deepEqual(skip(1), [1, 5, 0]);
  assert.deepEqual(skip(9, bytes.length - 10), [1, 5, 0]);
  assert.deepEqual(skip(9, 0, 7), [0, 0, 7]);
});
