// Rows for drivers: the lengths and the bytes of the cells, whatever they are and however long.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Column, parseColumn } from '../../../../src/shared/mysql/packets.ts';
import { writeDriverRow } from '../../../../src/worker/encode/driver-rows.ts';
import { planRow } from '../../../../src/worker/encode/rows.ts';
import { columnPacket, rowPacket, wire } from '../../../support/database/mysql-answer.ts';
import { fc } from '../../../support/property.ts';
import { collect, createWriter } from '../../support/transcript.ts';

const rules = { numbersAsStrings: 'none', yearIsNumber: false, jsonIsValue: false } as const;

function columns(count: number, charset: number): Column[] {
  const packet = columnPacket({ type: wire.text, charset });
  return Array.from({ length: count }, () => parseColumn(packet, 0, packet.length, false));
}

/** The row as a driver reads it: cells, and all of their bytes. */
function written(cells: readonly (Buffer | null)[], charset = wire.utf8mb4, holdBytes = 65536) {
  const transport = collect();
  const out = createWriter(transport, holdBytes);
  const packet = rowPacket(cells);
  const around = Buffer.concat([Buffer.from('xx'), packet, Buffer.from('yy')]);
  const plan = planRow(columns(cells.length, charset), rules);
  writeDriverRow(out, plan, around, 2, 2 + packet.length);
  out.end();
  const text = transport.body().toString('latin1');
  assert.match(text, /^\{"lengths":\[("-?\d+"(,"-?\d+")*)?\],"values":"[A-Za-z0-9+/]*={0,2}"\}$/);
  return JSON.parse(text) as { lengths: string[]; values: string };
}

const cell = fc.option(
  fc.oneof(
    fc.uint8Array({ maxLength: 8 }),
    fc.uint8Array({ minLength: 250, maxLength: 260 }),
    fc.integer({ min: 6140, max: 20_000 }).map((length) => new Uint8Array(length).fill(length)),
  ),
);

test('the lengths are those of the cells, and their bytes are all there in one piece', () => {
  fc.assert(
    fc.property(fc.array(cell, { maxLength: 12 }), fc.boolean(), (found, streams) => {
      const cells = found.map((bytes) => (bytes === null ? null : Buffer.from(bytes)));
      const { lengths, values } = written(cells, wire.utf8mb4, streams ? 1024 : 1e9);
      assert.deepEqual(
        lengths,
        cells.map((bytes) => String(bytes?.length ?? -1)),
      );
      const all = Buffer.concat(cells.map((bytes) => bytes ?? Buffer.alloc(0)));
      assert.equal(values, all.toString('base64'));
    }),
  );
});

test('a cell of another character set leaves as UTF-8, with the length that it has then', () => {
  const latin1 = 8;
  const { lengths, values } = written([Buffer.from([0xe9]), null, Buffer.from('a')], latin1);
  assert.deepEqual(lengths, ['2', '-1', '1']);
  assert.equal(Buffer.from(values, 'base64').toString(), 'éa');
});

test('a packet that is not as long as its cells is no row', () => {
  const plan = planRow(columns(2, wire.utf8mb4), rules);
  for (const cells of [[Buffer.from('a')], [Buffer.from('a'), null, null]]) {
    const packet = rowPacket(cells);
    const out = createWriter(collect());
    assert.throws(() => writeDriverRow(out, plan, packet, 0, packet.length), RangeError);
  }
});
