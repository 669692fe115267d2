// The end of a body: the longest line of a chunk's size, the longest trailers, and not a byte more.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BodyFrame } from '../../../../src/worker/http/body-frame.ts';
import { parsedHead } from '../../../support/incoming.ts';
import { cases, fc } from '../../../support/property.ts';

const frameOf = (header: string): BodyFrame | null =>
  parsedHead(`POST / HTTP/1.1\r\n${header}\r\n`).frame;
const chunked = 'Transfer-Encoding: chunked\r\n';
const ignore = () => {};

/** The number of bytes of a body that are taken: all of it, or -1 if it is refused. */
function taken(text: string): { readonly end: number; readonly isDone: boolean } {
  const frame = frameOf(chunked);
  const end = frame?.read(Buffer.from(text, 'latin1'), 0, ignore) ?? 0;
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

test('trailers have at most 16 KiB with the ends of their lines', () => {
  const withTrailer = (bytes: number) => `0\r\na:${'x'.repeat(bytes - 4)}\r\n\r\n`;
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
  const frame = frameOf('Content-Length: 5\r\n');
  assert.equal(frame?.read(Buffer.from('helloGET'), 0, ignore), 5);
  assert.equal(frame?.isDone, true);
  assert.equal(frameOf(''), null);
  assert.equal(frameOf('Content-Length: 0\r\n'), null);
});

const whole = '5;a=b\r\nhello\r\n1;c="d\\"e"\r\n!\r\n0\r\nTrailer: x\r\n\r\n';

test('chunks mean the same wherever they are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(whole.length), { maxLength: 8 }), (cuts) => {
      const frame = frameOf(chunked);
      const ends = [...cuts.sort((one, other) => one - other), whole.length];
      let from = 0;
      let body = '';
      for (const end of ends) {
        const bytes = Buffer.from(whole.slice(from, end));
        const used = frame?.read(bytes, 0, (piece) => {
          body += piece.toString();
        });
        assert.equal(used, bytes.length);
        from = end;
      }
      assert.deepEqual([body, frame?.isDone], ['hello!', true]);
    }),
    { numRuns: cases(500) },
  );
});

test('a malformed chunk is refused as soon as that is certain', () => {
  for (const text of [
    'g',
    '5 ',
    '5;a\0',
    '5\r\nhellox',
    '5\r\nhello\rx',
    '5\n',
    '0\r\nno colon\r\n',
    '0\r\nContent-Length: 5\r\n\r\n',
    '0\r\nTransfer-Encoding: chunked\r\n\r\n',
    '0\r\nConnection: close\r\n\r\n',
  ]) {
    assert.equal(taken(text).end, -1, JSON.stringify(text));
  }
});
