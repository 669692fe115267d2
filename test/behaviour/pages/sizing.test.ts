// docs/operate/sizing.md: the commands that show what a gateway uses print what the page shows.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { localiseGateway, openCommands } from '../../support/pages/page-commands.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway } = useGateway({ workers: 2, pool: 10 });
const blocks = findBlocks(readFileSync('docs/operate/sizing.md', 'utf8'));
const headings = ['Cores', 'Connections to the database', 'Memory', 'Clients and descriptors'];

for (const heading of headings) {
  test(`${heading}: what a gateway uses is seen as the page shows it`, async () => {
    const page = openCommands(blocks, heading, { localise: localiseGateway(gateway) });
    await page.watch();
    if (heading === 'Connections to the database') await page.watch();
    page.end();
  });
}

test('every section with commands is run', () => {
  const all = blocks.filter(({ language }) => language === 'sh').map(({ heading }) => heading);
  assert.deepEqual([...new Set(all)], headings);
});
