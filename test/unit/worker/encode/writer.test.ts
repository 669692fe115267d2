// The promise of the writer: whole up to what is held back, streamed one byte beyond, nothing lost on the way.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BufferPool, type ReplyWriter, slackBytes } from '../../../../src/worker/encode/writer.ts';
import { cases, fc } from '../../../support/property.ts';
import { type Collected, collect, createWriter } from '../../support/transcript.ts';

const pattern = Buffer.from(Array.from({ length: 256 * 1024 }, (_, index) => (index * 31) & 255));

/** Writes the pattern from the end of the reply on, in steps that an encoder could take. */
function append(out: ReplyWriter, count: number): void {
  for (let left = count; left > 0; ) {
    const step = Math.min(left, slackBytes);
    out.reserve(step);
    const from = out.totalBytes;
    pattern.copy(out.bytes, out.length, from, from + step);
    out.length += step;
    left -= step;
  }
}

function create(holdBytes: number, transport: Collected): ReplyWriter {
  return createWriter(transport, holdBytes);
}

for (const hold of [1, 1024, 65536, 65537, 200_000]) {
  test(`sends up to ${hold} bytes whole, and streams one more`, () => {
    for (const [length, how] of [
      [hold - 1, 'whole'],
      [hold, 'whole'],
      [hold + 1, 'finished'],
    ] as const) {
      const transport = collect();
      const out = create(hold, transport);
      append(out, length);
      out.end();
      assert.equal(transport.how(), how, `${length}`);
      assert.equal(out.committed, how === 'finished');
      assert.ok(transport.body().equals(pattern.subarray(0, length)));
    }
  });
}

test('loses and doubles nothing, whatever the steps', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(1, 1024, 65536, 150_000),
      fc.array(fc.integer({ min: 0, max: slackBytes }), { maxLength: 16 }),
      (hold, steps) => {
        const transport = collect();
        const out = create(hold, transport);
        for (const step of steps) append(out, step);
        const total = steps.reduce((sum, step) => sum + step, 0);
        assert.equal(out.totalBytes, total);
        out.end();
        assert.ok(transport.body().equals(pattern.subarray(0, total)));
        assert.equal(transport.how(), total > hold ? 'finished' : 'whole');
      },
    ),
    { numRuns: cases(100) },
  );
});

test('takes back everything after a mark while nothing has left', () => {
  const transport = collect();
  const out = create(65536, transport);
  append(out, 1000);
  const mark = out.length;
  append(out, 40_000);
  assert.equal(out.committed, false);
  out.rollback(mark);
  append(out, 10);
  out.end();
  assert.ok(transport.body().equals(pattern.subarray(0, 1010)));
});

test('streams in parts of a buffer each, not in many small ones', () => {
  const transport = collect();
  const out = create(1024, transport);
  for (let index = 0; index < 2560; index += 1) append(out, 100);
  out.end();
  assert.ok(
    transport.parts.slice(1, -1).every((part) => part > 65536 && part <= 65536 + slackBytes),
  );
});

test('lends a buffer again only after its bytes were sent', () => {
  const pool = new BufferPool();
  const unsent: (() => void)[] = [];
  const lent: Buffer[] = [];
  const transport = {
    ...collect(),
    sendPart: (bytes: Buffer, sent: () => void) => {
      lent.push(bytes);
      unsent.push(sent);
      return true;
    },
  };
  const out = createWriter(transport, 1024, pool);
  append(out, 150_000);
  assert.equal(new Set(lent.map((bytes) => bytes.buffer)).size, lent.length);
  const other = pool.acquire();
  assert.ok(lent.every((bytes) => bytes.buffer !== other.buffer));
  for (const sent of unsent) sent();
  const again = pool.acquire();
  assert.ok(lent.some((bytes) => bytes.buffer === again.buffer));
});

test('sends nothing after it was abandoned', () => {
  const transport = collect();
  const out = create(65536, transport);
  append(out, 5000);
  out.abandon();
  assert.equal(transport.how(), 'nothing');
});

test('holds no buffer until something is written', () => {
  const pool = new BufferPool();
  const kept = pool.acquire();
  pool.release(kept);
  const waiting = createWriter(collect(), 65536, pool);
  assert.equal(pool.acquire(), kept);
  pool.release(kept);
  append(waiting, 1);
  assert.notEqual(pool.acquire(), kept);
  waiting.abandon();
  assert.equal(pool.acquire(), kept);
});
