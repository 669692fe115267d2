// When a reader has stalled: by what its peer acknowledges, not by what the kernel takes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Peer } from '../../../../src/worker/http/peers.ts';
import { StallWatch } from '../../../../src/worker/http/slow-readers.ts';

type Seconds = number;

/**
 * When a reader is taken for stalled, in seconds; null: not within an hour. The kernel takes nothing for it meanwhile.
 * @param bytesAt what its peer has acknowledged
 */
async function stalledAfter(
  bytesAt: (seconds: Seconds) => number,
  { maxStillSeconds = 30, isExact = true, waitingAt = (_seconds: Seconds): number => 100_000 } = {},
): Promise<Seconds | null> {
  let seconds = 0;
  let stalledAt: Seconds | null = null;
  const peer: Peer = {
    get waitingBytes() {
      return waitingAt(seconds);
    },
    acknowledged: async () => ({ bytes: bytesAt(seconds), isExact }),
    maxStillMs: () => maxStillSeconds * 1000,
  };
  const watch = new StallWatch(
    peer,
    () => {
      stalledAt = seconds;
    },
    () => seconds * 1000,
  );
  watch.start();
  for (; seconds <= 3_600 && stalledAt === null; seconds += 5) await watch.check();
  watch.stop();
  return stalledAt;
}

/** Acknowledged in whole steps of 64 KiB, as over loopback. */
const inSteps = (bytesPerSecond: number) => (seconds: Seconds) =>
  Math.floor((seconds * bytesPerSecond) / 65_536) * 65_536;

test('a reader that takes nothing has stalled after 30 s', async () => {
  assert.equal(await stalledAfter(() => 0), 30);
});

test('a reader that takes 20 bytes a second has not, though the kernel takes nothing', async () => {
  assert.equal(await stalledAfter((seconds) => seconds * 20), null);
});

test('over loopback 5 KB and 1 KB a second are progress, although their steps come every 13 and 66 s', async () => {
  const maxStillSeconds = 130;
  assert.equal(await stalledAfter(inSteps(5_000), { maxStillSeconds }), null);
  assert.equal(await stalledAfter(inSteps(1_000), { maxStillSeconds }), null);
  assert.equal(await stalledAfter(() => 0, { maxStillSeconds }), 130);
});

test('a reader that stops has stalled as long after its last acknowledgement', async () => {
  const stoppedAt = await stalledAfter((seconds) => Math.min(seconds, 60) * 20);
  assert.ok(stoppedAt !== null && stoppedAt >= 90 && stoppedAt <= 100, `${stoppedAt}`);
});

test('bytes that the kernel takes are progress, and so is having nothing to send', async () => {
  assert.equal(await stalledAfter(() => 0, { waitingAt: (seconds) => 1_000_000 - seconds }), null);
  assert.equal(await stalledAfter(() => 0, { waitingAt: () => 0 }), null);
});
