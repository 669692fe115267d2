// --check names the grants that an account lacks, and the rights that it has too much of, and no others.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Account,
  findExcessGrants,
  findMissingGrants,
} from '../../../../src/supervisor/check/grants.ts';

const accountWith = (grants: readonly string[]): Account => ({
  name: 'app@10.%',
  grants,
  hiddenViews: [],
});
const find = (grants: readonly string[], more: Partial<Account> = {}) =>
  findMissingGrants('world', { ...accountWith(grants), ...more });

test('the grant is named for an account that writes and may not see triggers', () => {
  const usage = "GRANT USAGE ON *.* TO `app`@`10.%` IDENTIFIED BY PASSWORD '*1'";
  const [spot, ...others] = find([usage, 'GRANT SELECT, INSERT ON `world`.* TO `app`@`10.%`']);
  assert.equal(others.length, 0);
  assert.match(spot ?? '', /GRANT TRIGGER ON `world`\.\* TO 'app'@'10\.%'$/);
  for (const grants of [
    [usage, 'GRANT SELECT ON `world`.* TO `app`@`10.%`'],
    ['GRANT SELECT, INSERT, TRIGGER ON `world`.* TO `app`@`10.%`'],
    ['GRANT INSERT ON `world`.* TO `app`@`10.%`', 'GRANT TRIGGER ON `world`.`t` TO `app`@`10.%`'],
    ['GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION'],
    ['GRANT INSERT ON `world`.* TO `app`@`10.%`', 'GRANT `writer`@`%` TO `app`@`10.%`'],
  ]) {
    assert.deepEqual(find(grants), [], grants.join());
  }
});

test('the grant is named for views that the account may not see', () => {
  const [spot] = find([], { hiddenViews: ['v', 'w'] });
  assert.match(spot ?? '', /GRANT SHOW VIEW ON `world`\.\* TO 'app'@'10\.%' \(v, w\)$/);
});

const rightsOf = (...grants: readonly string[]) =>
  findExcessGrants(accountWith(grants)).map(
    (spot) => /^the account has (.*) on \*\.\*/.exec(spot)?.[1],
  );

test('warns of FILE, SUPER and similar rights on everything', () => {
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

test('does not warn of the rights of an ordinary account', () => {
  assert.deepEqual(
    rightsOf(
      'GRANT USAGE ON *.* TO `file`@`%`',
      'GRANT ALL PRIVILEGES ON `super`.* TO `file`@`%`',
      'GRANT SELECT ON `file`.`super` TO `file`@`%`',
    ),
    [],
  );
});
