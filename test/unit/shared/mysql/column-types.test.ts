// The promise of column descriptions without a server: marks and lengths that no table has.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeColumn } from '../../../../src/shared/mysql/column-types.ts';
import { parseColumn } from '../../../../src/shared/mysql/packets.ts';
import { type ColumnWish, columnPacket } from '../../../support/database/mysql-answer.ts';

function describe(wish: ColumnWish): object {
  const packet = columnPacket({ ...wish, extended: wish.extended ?? [] });
  return describeColumn(parseColumn(packet, 0, packet.length, true));
}

test('a decimal whose scale is not fixed has neither precision nor scale', () => {
  const wish = { type: 246, charset: 63, length: 67 };
  for (const decimals of [31, 39]) {
    assert.deepEqual(describe({ ...wish, decimals }), {
      name: 'c',
      type: 'DECIMAL',
      nullable: true,
    });
  }
  const exact = { name: 'c', type: 'DECIMAL', precision: 65, scale: 30, nullable: true };
  assert.deepEqual(describe({ ...wish, decimals: 30 }), exact);
  assert.deepEqual(describe({ ...wish, length: 83, decimals: 30 }), exact);
});

test("MariaDB's own types are recognised by their names, unknown ones by the wire", () => {
  const text = { type: 254, charset: 45, flags: 0xa1 };
  for (const [name, type] of [
    ['uuid', 'UUID'],
    ['inet4', 'INET4'],
    ['inet6', 'INET6'],
    ['later', 'CHAR'],
  ] as const) {
    assert.deepEqual(describe({ ...text, extended: [[0, name]] }), {
      name: 'c',
      type,
      nullable: false,
    });
  }
  assert.deepEqual(describe({ type: 252, charset: 45, extended: [[1, 'json']] }), {
    name: 'c',
    type: 'JSON',
    nullable: true,
  });
  assert.deepEqual(describe({ type: 200 }), { name: 'c', type: 'UNKNOWN', nullable: true });
});
