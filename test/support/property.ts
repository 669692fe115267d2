// The seed of every input that is drawn at random, and fast-check under that seed. The linter forbids fast-check elsewhere in test/.
import fc from 'fast-check';
import { blackBox } from './black-box.ts';

/** Seed of all random inputs: a fixed one in the suite, another one where DBHTTPD_TEST_SEED gives it. */
export const seed = Number(process.env.DBHTTPD_TEST_SEED ?? 20_221);
if (!Number.isSafeInteger(seed)) {
  throw new Error(
    `DBHTTPD_TEST_SEED must be a whole number, not "${process.env.DBHTTPD_TEST_SEED}".`,
  );
}

const effort = Number(process.env.DBHTTPD_TEST_EFFORT ?? 1);
if (!(effort > 0)) {
  throw new Error(
    `DBHTTPD_TEST_EFFORT must be a number above 0, not "${process.env.DBHTTPD_TEST_EFFORT}".`,
  );
}

/** Number of random cases: the suite's, times DBHTTPD_TEST_EFFORT where an exploration tries more. At least one. */
export function cases(count: number): number {
  return Math.max(1, Math.round(count * effort));
}

// A property without a count runs 100 times, fast-check's default.
fc.configureGlobal({ seed, numRuns: cases(100) });

blackBox.add({ name: 'the seed of random inputs', show: () => `DBHTTPD_TEST_SEED=${seed}` });
/**
 * Any character of Unicode, one in three of ASCII, as the unit of fc.string. fast-check's own `unit: 'binary'` takes more than a second of
 * the processor in each process that uses it.
 */
export const anyCharacter = fc
  .oneof(fc.nat(0x7f), fc.nat(0xd7ff), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));

export { fc };
