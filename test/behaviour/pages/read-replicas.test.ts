// docs/guides/read-replicas.md: every command runs as it stands, before a replica that lags, and prints what the page shows.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { replicationHere, startReplication } from '../../support/clusters/replication.ts';
import { rolesBecome, startBefore } from '../../support/clusters/several-servers.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { localiseGateway, openCommands } from '../../support/pages/page-commands.ts';

const blocks = findBlocks(readFileSync('docs/guides/read-replicas.md', 'utf8'));

test('a read with the token of a write sees it, and one without may not', async (t) => {
  if (!replicationHere(t)) return;
  const set = await startReplication({ replicas: 1 });
  t.after(set.stop);
  const [first, second] = set.servers;
  assert.ok(first !== undefined && second !== undefined);
  await first.query(
    'create table task (id int primary key, done tinyint not null); insert into task values (7, 0)',
  );
  await set.waitForCatchUp();
  const gateway = await startBefore(set, { reads: 'replicas', max_lag: '1h' });
  t.after(gateway.stop);
  await rolesBecome(gateway, ['primary', 'replica']);
  await set.lag(second, 'stopped');
  const localise = localiseGateway(gateway);
  const page = openCommands(blocks, 'How to use it', {
    localise: (text) => localise(text).replaceAll('/tmp/', `${gateway.directory}/`),
  });
  await page.run();
  await page.run();
  await page.run();
  page.end();
});
