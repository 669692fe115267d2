// Which traceparents are valid by W3C Trace Context, and which one the gateway passes on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTraceparent } from '../../../../src/worker/observe/trace-context.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';
const whole = `00-${traceId}-${parentId}-01`;

test('a traceparent of version 00 is passed on unchanged, with any flags', () => {
  for (const flags of ['00', '01', '03', 'ff']) {
    const traceparent = `00-${traceId}-${parentId}-${flags}`;
    assert.deepEqual(parseTraceparent(traceparent), { traceId, traceparent });
  }
});

test('one of a later version is passed on as version 00 with the flag that 00 knows', () => {
  for (const [given, flags] of [
    [`01-${traceId}-${parentId}-01`, '01'],
    [`cc-${traceId}-${parentId}-02-what-comes-later`, '00'],
    [`fe-${traceId}-${parentId}-ff-`, '01'],
  ] as const) {
    const traceparent = `00-${traceId}-${parentId}-${flags}`;
    assert.deepEqual(parseTraceparent(given), { traceId, traceparent });
  }
});

for (const [what, given] of [
  ['nothing', undefined],
  ['an empty text', ''],
  ['several', [whole, whole]],
  ['several, joined', `${whole}, ${whole}`],
  ['no trace', `00-${'0'.repeat(32)}-${parentId}-01`],
  ['no parent', `00-${traceId}-${'0'.repeat(16)}-01`],
  ['version ff', `ff-${traceId}-${parentId}-01`],
  ['capital letters', whole.toUpperCase()],
  ['a letter beyond f', whole.replace('4b', '4g')],
  ['one digit less', whole.slice(0, -1)],
  ['one digit more', `${whole}0`],
  ['something behind version 00', `${whole}-00`],
  ['something behind a later version without a dash', `01${whole.slice(2)}.`],
  ['a line of its own', `${whole}\n`],
  ['spaces around it', ` ${whole} `],
] as const) {
  test(`${what}: no trace`, () => {
    assert.equal(parseTraceparent(given as string | string[] | undefined), null);
  });
}
