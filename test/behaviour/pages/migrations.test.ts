// docs/migrations.md: every program is run as it stands before a real gateway, and prints what stands below it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { useGateway } from '../../support/use-gateway.ts';

const run = promisify(execFile);
const blocks = findBlocks(readFileSync('docs/migrations.md', 'utf8'));
const { gateway } = useGateway({ workers: 1 });
const workspace = mkdtempSync(join(tmpdir(), 'dbhttpd-migrations-'));
after(() => rmSync(workspace, { recursive: true }));

/** What `drizzle-kit generate` writes for one migration. Returns the folder. */
function writeMigrations(): string {
  const folder = join(workspace, 'drizzle');
  mkdirSync(join(folder, 'meta'), { recursive: true });
  writeFileSync(
    join(folder, '0000_first.sql'),
    'create table `pet` (`id` int primary key);\n--> statement-breakpoint\ninsert into `pet` values (1);',
  );
  const entry = {
    idx: 0,
    version: '5',
    when: 1_760_000_000_000,
    tag: '0000_first',
    breakpoints: true,
  };
  const journal = { version: '7', dialect: 'mysql', entries: [entry] };
  writeFileSync(join(folder, 'meta', '_journal.json'), JSON.stringify(journal));
  return folder;
}

for (const [index, { language, heading, text }] of blocks.entries()) {
  if (language !== 'js') continue;
  test(`${heading}: the program prints what the page says`, async () => {
    const program = text
      .replaceAll('127.0.0.1:9090', `127.0.0.1:${gateway.port}`)
      .replaceAll("migrationsFolder: 'drizzle'", `migrationsFolder: '${writeMigrations()}'`);
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program]);
    assert.deepEqual(JSON.parse(stdout), JSON.parse(blocks[index + 1]?.text ?? ''));
  });
}
