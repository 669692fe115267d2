// The name of systemd's socket unit is that of the instance that -s names.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { socketUnitOf } from '../../../../src/supervisor/check/socket-unit.ts';

test('the unit has the sections after -s in its name', () => {
  assert.equal(socketUnitOf(['world']), 'dbhttpd@world.socket');
  assert.equal(socketUnitOf(['world', 'shop']), 'dbhttpd@world:shop.socket');
});
