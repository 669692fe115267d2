// The promise of heads in DBSlayer's form: they mean what they would mean to the letter, wherever they are cut.
import assert from 'node:assert/strict';
import test from 'node:test';
import { oldHeads, strictHeads } from '../../../../src/worker/http/head-form.ts';
import { cases, fc } from '../../../support/property.ts';

const strict = (head: string) =>
  oldHeads.toStrictHead?.(Buffer.from(head, 'latin1')).toString('latin1') ?? '';

test('brings line ends and spaces into strict form, and leaves all else', () => {
  for (const [head, expected] of [
    ['GET /x HTTP/1.0\n\n', 'GET /x HTTP/1.0\r\n\r\n'],
    ['GET   /x    HTTP/1.0\r\n\r\n', 'GET /x HTTP/1.0\r\n\r\n'],
    ['GET  /x HTTP/1.1\nA:  b  \r\nC: d\n\r\n', 'GET /x HTTP/1.1\r\nA:  b  \r\nC: d\r\n\r\n'],
    ['GET  /x y  HTTP/1.0\n\n', 'GET /x y HTTP/1.0\r\n\r\n'],
    ['GET /x HTTP/1.0 \n\n', 'GET /x HTTP/1.0 \r\n\r\n'],
    ['GET  HTTP/1.0\n\n', 'GET  HTTP/1.0\r\n\r\n'],
    ['GET\t/x\tHTTP/1.0\n\n', 'GET\t/x\tHTTP/1.0\r\n\r\n'],
    ['GET\n\n', 'GET\r\n\r\n'],
    ['   \n\n', '   \r\n\r\n'],
    ['\n\n', '\r\n\r\n'],
    ['GET /\rx HTTP/1.0\r\r\n\n', 'GET /\rx HTTP/1.0\r\r\n\r\n'],
  ] as const) {
    assert.equal(strict(head), expected, JSON.stringify(head));
  }
});

test('finds ends of lines and heads as if every line ended with CR LF, wherever the search goes on', () => {
  const ends = fc.constantFrom('\n', '\r\n');
  const line = fc.constantFrom('GET /x HTTP/1.0', 'A: b', 'X:', 'GET  /  HTTP/1.1');
  const lines = fc.array(fc.tuple(line, ends), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(lines, ends, fc.nat(), (all, last, cut) => {
      const head = all.map(([text, end]) => text + end).join('') + last;
      const bytes = Buffer.from(`${head}GET /behind`);
      assert.equal(oldHeads.findEnd(bytes, 0), head.length);
      assert.equal(oldHeads.findLineEnd(bytes, 0), all[0]?.[0].length);
      const come = cut % head.length;
      assert.equal(oldHeads.findEnd(bytes.subarray(0, come), 0), -1);
      assert.equal(oldHeads.findEnd(bytes, Math.max(0, come - 4)), head.length);
      const strictHead = Buffer.from(strict(head));
      assert.equal(strictHeads.findEnd(strictHead, 0), strictHead.length);
      assert.equal(strictHeads.hasBadLineEnd(strictHead, 0), false);
      assert.equal(strict(strictHead.toString()), strictHead.toString());
    }),
    { numRuns: cases(500) },
  );
});
