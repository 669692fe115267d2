// docs/operate/failover.md: the commands for MariaDB's replication are run as they stand, while clients write. scripts/cluster commands runs all.
// Waits 15 s: servers are probed once a second, and a server that was gone counts after three probes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replicationHere } from '../../support/clusters/replication.ts';
import { headingsWithCommands } from '../../support/pages/failover-page.ts';
import { playedHeadings, playMariadb } from '../../support/pages/failover-scenes.ts';

test('an operator who types what the page shows sees what it shows, and no reply to a write was wrong', async (t) => {
  if (!replicationHere(t)) return;
  const played: string[] = [];
  await playMariadb(({ heading }) => played.push(heading));
  assert.deepEqual(played, playedHeadings.mariadb);
});

test('every section with commands is played, here or by scripts/cluster commands', () => {
  const all = Object.values(playedHeadings).flat();
  assert.deepEqual(headingsWithCommands(), all);
});
