// The README says what the program's own tables say.
// Must not judge the rest of it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { withReference } from '../../../scripts/reference.ts';

test("the README's reference of settings and metrics is the program's own", () => {
  const text = readFileSync(new URL('../../../../README.md', import.meta.url), 'utf8');
  assert.equal(text, withReference(text), 'run: npm run reference');
});
