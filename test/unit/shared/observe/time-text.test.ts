// Durations are written as toFixed writes them, except values exactly between two digits.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tenths, thousandths } from '../../../../src/shared/observe/time-text.ts';
import { fc } from '../../../support/property.ts';

for (const [name, write, digits] of [
  ['tenths', tenths, 1],
  ['thousandths', thousandths, 3],
] as const) {
  test(`${name} have ${digits} digits behind the point, and are the nearest there are`, () => {
    for (const ms of [0, 0.04, 0.96, 9.99, 12.3456, 59_999.9996, 86_400_000]) {
      assert.equal(write(ms), ms.toFixed(digits));
    }
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e10, noNaN: true }), (ms) => {
        const text = write(ms);
        assert.match(text, new RegExp(`^\\d+\\.\\d{${digits}}$`));
        assert.ok(Math.abs(Number(text) - ms) <= 0.5001 / 10 ** digits, `${ms}: ${text}`);
      }),
    );
  });
}
