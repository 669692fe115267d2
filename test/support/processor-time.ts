// The processor time of an operation. Other load on the machine changes it little, unlike the time on a clock.
import assert from 'node:assert/strict';

/** Milliseconds of the processor that this process spends on a piece of work. */
export function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const times = 8;
/** More than this many times eight times as much is not in proportion. Quadratic growth would be eight times as much again. */
const room = 4;
/** Below this, what the engine does beside the work decides. */
const minMs = 300;

/** Asserts that work on a text of this length takes about eight times as much as on an eighth of it, not sixty-four times as much. */
export function assertProportional(
  make: (length: number) => string,
  length: number,
  work: (text: string) => unknown,
): void {
  const [short, long] = [make(Math.ceil(length / times)), make(length)];
  const shortMs = processorMs(() => work(short));
  const longMs = processorMs(() => work(long));
  const what = `${long.slice(0, 40)}…: ${shortMs} ms, and ${longMs} ms for ${times} times as much`;
  assert.ok(longMs < minMs || longMs < room * times * shortMs, what);
}

/** Makes texts that repeat a piece. */
export function repeating(piece: string): (length: number) => string {
  return (length) => piece.repeat(Math.ceil(length / piece.length));
}
