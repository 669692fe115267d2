// The rules by which a primary is chosen, explored by the model: what they are known not to know is written down here.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explore } from '../../../../scripts/primary-model/search.ts';
import { usualBudget } from '../../../../scripts/primary-model/world.ts';

test('in five steps a gateway writes to another server than the primary only if nothing that it sees or remembers could show it', () => {
  const found = explore(usualBudget, 5);
  assert.deepEqual(found.avoidable, []);
  assert.deepEqual(
    found.withoutMemory.map((way) => way.join(', ')),
    // A gateway on a new host sees two servers that can be written to.
    [
      'write A, crash A, promote B, boot A, start',
      'crash A, promote B, boot A, errant row on C, start',
    ],
  );
  // Only the former primary is seen, and no replica that is seen has followed the new one.
  for (const way of found.unknowable) assert.ok(way.some((step) => /^(cut|start)/.test(step)));
  assert.equal(found.unknowable.length, 9);
});

test('in five steps a gateway refuses a primary with healthy servers only after a promotion that it did not see', () => {
  const found = explore(usualBudget, 5);
  assert.deepEqual(
    found.saneRefusing.map((way) => way.join(', ')),
    [
      'crash A, promote B, boot A, crash B, promote A',
      'cut A, switch over to B, switch over to A, crash B, heal A',
    ],
  );
});
