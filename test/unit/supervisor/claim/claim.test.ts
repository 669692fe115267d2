// The claim is on the lock file that has its name: one that was deleted meanwhile does not count.
// flock(1) is the system's; the moment between opening and locking is had by what runs in the same turn.
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

test('a lock file that is deleted between opening and locking is made again: the claim is on the one that is there', async () => {
  const pidfile = join(directory, 'world.pid');
  const claiming = claimInstance(pidfile);
  // It has been opened in this turn, and flock(1) has just been started.
  rmSync(`${pidfile}.lock`);
  const claim = heldBy(await claiming);
  assert.equal(fstatSync(claim.fd).ino, statSync(`${pidfile}.lock`).ino);
  assert.equal(statSync(`${pidfile}.lock`).mode & 0o777, 0o600);
  claim.close();
});
