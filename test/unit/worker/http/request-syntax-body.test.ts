// The end of a body: the longest line of a chunk's size, the longest trailers, and not a byte more.
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { frameOf } from '../../../../src/worker/http/request-syntax.ts';

const chunked = { headers: { 'transfer-encoding': 'chunked' } } as unknown as IncomingMessage;

/** The number of bytes of a body that are taken: all of it, or -1 if it is refused. */
function taken(text: string): { readonly end: number; readonly isDone: boolean } {
  const frame = frameOf(chunked);
  const bytes = Buffer.from(text, 'latin1');
  const end = frame?.take(bytes, 0) ?? 0;
  return { end, isDone: frame?.isDone === true };
}

const refused = { end: -1, isDone: false };
const withExtension = (bytes: number) => `5;${'x'.repeat(bytes - 2)}\r\nhello\r\n0\r\n\r\n`;

test('the line of a chunk has at most 1 KiB with its extensions', () => {
  const longest = withExtension(1024);
  assert.deepEqual(taken(longest), { end: longest.length, isDone: true });
  assert.deepEqual(taken(withExtension(1025)), refused);
  assert.deepEqual(taken(withExtension(1024 * 1024)), refused);
});

test('trailers have at most 16 KiB', () => {
  const withTrailer = (bytes: number) => `0\r\na:${'x'.repeat(bytes - 2)}\r\n\r\n`;
  const longest = withTrailer(16 * 1024);
  assert.deepEqual(taken(longest), { end: longest.length, isDone: true });
  assert.deepEqual(taken(withTrailer(16 * 1024 + 1)), refused);
});

test('a size has at most twelve digits, and at least one', () => {
  const size = '000000000005';
  const body = `${size}\r\nhello\r\n0\r\n\r\n`;
  assert.deepEqual(taken(body), { end: body.length, isDone: true });
  assert.deepEqual(taken(`0${body}`), refused);
  assert.deepEqual(taken('\r\nhello\r\n0\r\n\r\n'), refused);
  assert.deepEqual(taken(';x\r\nhello\r\n0\r\n\r\n'), refused);
});

test('a body of a known length ends after its last byte, and later bytes are not taken', () => {
  const frame = frameOf({ headers: { 'content-length': '5' } } as unknown as IncomingMessage);
  assert.equal(frame?.take(Buffer.from('helloGET'), 0), 5);
  assert.equal(frame?.isDone, true);
  assert.equal(frameOf({ headers: {} } as unknown as IncomingMessage), null);
  assert.equal(frameOf({ headers: { 'content-length': '0' } } as unknown as IncomingMessage), null);
});
