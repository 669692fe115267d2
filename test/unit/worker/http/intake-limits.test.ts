// The largest header section of a request, and one byte more; in one segment and in several.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BufferedInput } from '../../../../src/worker/http/buffered-input.ts';
import { strictHeads } from '../../../../src/worker/http/head-form.ts';
import { maxHeadersBytes } from '../../../../src/worker/http/head-parser.ts';
import { Intake, type IntakeEvents } from '../../../../src/worker/http/intake.ts';

const maxBytes = 16 * 1024;

/** The answer to a request with this many bytes of headers, between the request line and the empty line. */
function answerTo(headerBytes: number, cutAt: number | null): string {
  let answer = 'waits';
  const events: IntakeEvents = {
    isBusy: false,
    isAnswered: false,
    begin: () => {
      answer = 'taken';
      return { takesPieces: true, take: () => {}, end: () => {} };
    },
    refuse: ({ code }) => {
      answer = code;
    },
    setReading: () => {},
  };
  const intake = new Intake(events, {
    buffered: new BufferedInput(1 << 20),
    maxUrlBytes: 1 << 20,
    maxHeadersBytes,
    heads: strictHeads,
  });
  const field = '\r\nX: ';
  const head = `GET / HTTP/1.1${field}${'x'.repeat(headerBytes - field.length)}\r\n\r\n`;
  const bytes = Buffer.from(head);
  intake.take(bytes.subarray(0, cutAt ?? bytes.length));
  if (cutAt !== null) intake.take(bytes.subarray(cutAt));
  return answer;
}

test('headers of exactly 16 KiB are taken, and of one byte more refused', () => {
  for (const cutAt of [null, 1, 20, maxBytes - 1, maxBytes, maxBytes + 14, maxBytes + 16]) {
    assert.equal(answerTo(maxBytes, cutAt), 'taken', `cut at ${cutAt}`);
    assert.equal(answerTo(maxBytes + 1, cutAt), 'HEADERS_TOO_LARGE', `cut at ${cutAt}`);
  }
});
