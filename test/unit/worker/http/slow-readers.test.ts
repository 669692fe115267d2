// Which readers are given up: the slowest beyond those that may be slow, only while requests wait.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  Pace,
  type ReaderWithSession,
  SlowReaders,
} from '../../../../src/worker/http/slow-readers.ts';

/** Readers at these paces, bytes a second, after three seconds; the paces of those that were given up. */
async function givenUp(paces: readonly number[], { othersWait = true, maxSessions = 2 } = {}) {
  let now = 0;
  let looks = 0;
  let reported = 0;
  const ended: number[] = [];
  const readers = new SlowReaders(
    {
      othersWait: () => othersWait,
      maxSessions: () => maxSessions,
      onGivenUp: (count) => {
        reported += count;
      },
    },
    () => now,
  );
  for (const pace of paces) {
    const reader: ReaderWithSession = {
      index: -1,
      pace: new Pace(),
      acknowledged: async () => {
        looks += 1;
        return { bytes: Math.floor((now / 1000) * pace), isExact: true };
      },
      giveUp: () => {
        ended.push(pace);
        readers.delete(reader);
      },
    };
    readers.add(reader);
  }
  for (; now <= 3_000; now += 400) await readers.sample();
  assert.equal(reported, ended.length);
  return { ended, looks };
}

test('the slowest are given up, down to as many as may be slow', async () => {
  const { ended } = await givenUp([50_000, 1_000, 3_000_000, 20_000, 0]);
  assert.deepEqual(ended, [0, 1_000]);
});

test('readers that flow are not given up, however many they are', async () => {
  assert.deepEqual((await givenUp([70_000, 100_000, 3_000_000, 1_000_000])).ended, []);
});

test('no reader is given up while no request waits', async () => {
  assert.deepEqual((await givenUp([0, 0, 0, 0], { othersWait: false })).ended, []);
});

test('if there are no more readers than may be slow, none is checked', async () => {
  assert.deepEqual(await givenUp([0, 0]), { ended: [], looks: 0 });
});
