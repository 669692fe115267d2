// --check warns of rights that READ ONLY does not bound, and of no others.
// Must not know a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findExcessGrants } from '../../../../src/supervisor/check/excess-grants.ts';

const rightsOf = (...grants: readonly string[]) =>
  findExcessGrants(grants).map((spot) => /^the account has (.*) on \*\.\*/.exec(spot)?.[1]);

test('FILE, SUPER and their kin on everything are warned of', () => {
  assert.deepEqual(rightsOf('GRANT SELECT, FILE ON *.* TO `app`@`%`'), ['FILE']);
  assert.deepEqual(
    rightsOf(
      'GRANT FILE, SUPER ON *.* TO `a`@`%`',
      'GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO `a`@`%`',
    ),
    ['FILE', 'SUPER', 'SYSTEM_VARIABLES_ADMIN'],
  );
  assert.deepEqual(rightsOf('GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION'), [
    'ALL PRIVILEGES',
  ]);
});

test('what an ordinary account has is no warning', () => {
  assert.deepEqual(
    rightsOf(
      'GRANT USAGE ON *.* TO `file`@`%`',
      'GRANT ALL PRIVILEGES ON `super`.* TO `file`@`%`',
      'GRANT SELECT ON `file`.`super` TO `file`@`%`',
    ),
    [],
  );
});
