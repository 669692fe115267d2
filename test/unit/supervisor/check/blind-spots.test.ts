// --check names the grants for want of which views and triggers stay unknown, and no others.
// Must not know a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findBlindSpots, type Sight } from '../../../../src/supervisor/check/blind-spots.ts';

const find = (grants: readonly string[], more: Partial<Sight> = {}) =>
  findBlindSpots({ database: 'world', account: 'app@10.%', grants, hiddenViews: [], ...more });

test('an account that writes and may not see triggers is told the grant', () => {
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

test('views that the account may not see are named with the grant', () => {
  const [spot] = find([], { hiddenViews: ['v', 'w'] });
  assert.match(spot ?? '', /GRANT SHOW VIEW ON `world`\.\* TO 'app'@'10\.%' \(v, w\)$/);
});
