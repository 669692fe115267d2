// The memory of a connection's intake: what it counts, and no more than that.
import assert from 'node:assert/strict';
import test from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BufferedInput } from '../../../../src/worker/http/buffered-input.ts';
import { strictHeads } from '../../../../src/worker/http/head-form.ts';
import { maxHeadersBytes } from '../../../../src/worker/http/head-parser.ts';
import { Intake, type IntakeEvents } from '../../../../src/worker/http/intake.ts';

const mebibyte = 1024 ** 2;
const events: IntakeEvents = {
  isBusy: false,
  isAnswered: true,
  begin: () => ({ takesPieces: true, take: () => {}, end: () => {} }),
  refuse: ({ message }) => assert.fail(message),
  setReading: () => {},
};

/** The memory of buffers, without garbage. */
function arrayBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().arrayBuffers;
}

test('the first byte behind a long request keeps no memory of that request', () => {
  const held = new BufferedInput(64 * mebibyte);
  const settings = { buffered: held, maxUrlBytes: mebibyte, maxHeadersBytes, heads: strictHeads };
  const before = arrayBytes();
  const intakes = Array.from({ length: 20 }, () => {
    const intake = new Intake(events, settings);
    intake.take(Buffer.from(`GET /${'x'.repeat(mebibyte / 2)}`));
    intake.take(Buffer.from(' HTTP/1.1\r\nHost: localhost\r\n\r\nG'));
    return intake;
  });
  assert.equal(held.total, intakes.length);
  const kept = arrayBytes() - before;
  assert.ok(kept < 4 * mebibyte, `${kept} bytes are kept`);
});
