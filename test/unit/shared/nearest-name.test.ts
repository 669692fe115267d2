// The promise of "did you mean": a near name, and none that only happens to be short.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findNearest } from '../../../src/shared/nearest-name.ts';

const known = ['database', 'host', 'user', 'password', 'pool', 'port', 'token', 'token_file'];

test('a misspelt name leads to the one that is meant', () => {
  for (const [asked, meant] of [
    ['pasword', 'password'],
    ['Databse', 'database'],
    ['tokenfile', 'token_file'],
    ['pol', 'pool'],
  ] as const) {
    assert.equal(findNearest(asked, known), meant);
  }
});

test('a name that is near none leads nowhere, however long it is', () => {
  for (const asked of ['', 'x', 'charset', 'p'.repeat(100_000)]) {
    assert.equal(findNearest(asked, known), null, asked.slice(0, 20));
  }
});
