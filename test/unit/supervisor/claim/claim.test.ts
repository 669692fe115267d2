// The claim is on the lock file at its path. A file that was deleted meanwhile does not count.
// flock(1) is the system's. Code that runs in the same turn acts between opening and locking.
import assert from 'node:assert/strict';
import { fstatSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type Claimed, claimInstance } from '../../../../src/supervisor/claim/claim.ts';

const directory = mkdtempSync(join(tmpdir(), 'claim-'));
after(() => rmSync(directory, { recursive: true }));

function heldBy(claimed: Claimed) {
  if (claimed.kind !== 'held') return assert.fail(claimed.reason);
  return claimed.claim;
}

test('a lock file that is deleted between opening and locking is created again, and the claim is on the new one', async () => {
  const pidfile = join(directory, 'world.pid');
  const claiming = claimInstance(pidfile);
  // It has been opened in this turn, and flock(1) has just been started.
  rmSync(`${pidfile}.lock`);
  const claim = heldBy(await claiming);
  assert.equal(fstatSync(claim.fd).ino, statSync(`${pidfile}.lock`).ino);
  assert.equal(statSync(`${pidfile}.lock`).mode & 0o777, 0o600);
  claim.close();
});
