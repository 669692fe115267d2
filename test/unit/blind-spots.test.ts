// --check names the views and triggers that a session's automatic reset cannot see through, and no others.
// Must not know a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findBlindSpots, type Stored } from '../../src/supervisor/blind-spots.ts';

const view = (name: string, text: string | null): Stored => ({ kind: 'view', name, text });
const trigger = (name: string, text: string): Stored => ({ kind: 'trigger', name, text });
const routine = (name: string, text: string): Stored => ({ kind: 'routine', name, text });

test('a lock and an insert id set by hand are found, reading the insert id is not', () => {
  const found = findBlindSpots([
    view('locks', "select get_lock('x', 1) AS `a`"),
    view('plain', 'select last_insert_id() AS `a`, count(0) AS `get_lock` from `t`'),
    view('secret', null),
    trigger('sets', 'set new.id = LAST_INSERT_ID( 7 )'),
    trigger('frees', 'do release_all_locks()'),
  ]);
  assert.deepEqual(found, ['trigger frees', 'trigger sets', 'view locks']);
});

test('a call through routines is found, in quotes, in any case and any depth', () => {
  const found = findBlindSpots([
    routine('Deep', "return get_lock('x', 0)"),
    routine('middle', 'return `deep`()'),
    routine('harmless', 'return 1'),
    view('caller', 'select `world`.`MIDDLE`() AS `a`'),
    view('other', 'select `world`.`harmless`() AS `a`'),
    trigger('proc', 'call middle ()'),
  ]);
  assert.deepEqual(found, ['trigger proc', 'view caller']);
});

test('routines that call each other in a circle end the search', () => {
  assert.deepEqual(findBlindSpots([routine('a', 'call b()'), routine('b', 'call a()')]), []);
});
