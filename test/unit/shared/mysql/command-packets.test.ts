// A statement with query attributes: byte for byte, and how many bytes that takes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  commandBytes,
  encodeQuery,
  queryHeadBytes,
} from '../../../../src/shared/mysql/command-packets.ts';

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const sql = "select 'é'";

test('without query attributes a statement is its command and its text', () => {
  for (const trace of [null, traceparent]) {
    const packet = encodeQuery(sql, false, trace);
    assert.equal(packet.toString(), `\x0c\0\0\0\x03${sql}`);
  }
});

test('with query attributes a statement declares that it has none', () => {
  assert.equal(encodeQuery(sql, true, null).toString(), `\x0e\0\0\0\x03\0\x01${sql}`);
});

test('with query attributes a statement carries its traceparent as a text', () => {
  const head = Buffer.from([0x56, 0, 0, 0, 3, 1, 1, 0, 1, 0xfe, 0, 11]);
  const rest = Buffer.from(`traceparent\x37${traceparent}${sql}`);
  const packet = encodeQuery(sql, true, traceparent);
  assert.equal(packet.toString('hex'), Buffer.concat([head, rest]).toString('hex'));
});

test('the length of the head is known before the statement is sent, also with 16 MiB of text', () => {
  for (const text of [sql, 'x'.repeat(16 * 1024 * 1024)]) {
    for (const hasAttributes of [false, true]) {
      for (const trace of [null, traceparent]) {
        const bytes = commandBytes(encodeQuery(text, hasAttributes, trace));
        assert.equal(bytes - Buffer.byteLength(text), queryHeadBytes(hasAttributes, trace));
      }
    }
  }
});

test('a traceparent whose length does not fit into a byte is not sent', () => {
  assert.throws(() => encodeQuery(sql, true, 'x'.repeat(251)), RangeError);
});
