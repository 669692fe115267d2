// docs/guides/migrations.md: each program runs as it stands, with a real gateway, and prints what the page shows below it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { useGateway } from '../../support/use-gateway.ts';

const run = promisify(execFile);
const blocks = findBlocks(readFileSync('docs/guides/migrations.md', 'utf8'));
const token = 'a-long-random-text';
const plain = useGateway({ workers: 2 });
const withDrivers = useGateway({ workers: 1, token, drivers: 'planetscale' });
const workspace = mkdtempSync(join(tmpdir(), 'dbhttpd-migrations-'));
after(() => rmSync(workspace, { recursive: true }));
prepareWorkspace();

function prepareWorkspace(): void {
  mkdirSync(join(workspace, 'node_modules'));
  for (const name of ['drizzle-orm', 'kysely', 'kysely-planetscale']) {
    symlinkSync(resolve('node_modules', name), join(workspace, 'node_modules', name));
  }
  symlinkSync(resolve('.'), join(workspace, 'node_modules/dbhttpd'));
  const lock = blocks.find(({ mark }) => mark === 'file');
  writeFileSync(join(workspace, 'migration-lock.mjs'), lock?.text ?? '');
  writeDrizzleMigration(join(workspace, 'drizzle'));
}

/** Writes what `drizzle-kit generate` writes for one migration. */
function writeDrizzleMigration(folder: string): void {
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
}

const programs = blocks.flatMap((block, index) =>
  block.language === 'js' && block.mark !== 'file'
    ? [{ ...block, printed: blocks[index + 1]?.text ?? '' }]
    : [],
);

type Program = (typeof programs)[number];

async function runProgram({ mark, text }: Pick<Program, 'mark' | 'text'>): Promise<string> {
  const { gateway } = mark === 'drivers' ? withDrivers : plain;
  const path = join(workspace, 'program.mjs');
  writeFileSync(path, text.replaceAll('127.0.0.1:9090', `127.0.0.1:${gateway.port}`));
  return (await run(process.execPath, [path], { cwd: workspace })).stdout;
}

for (const [index, program] of programs.entries()) {
  test(`${program.heading}: program ${index} prints what the page says`, async () => {
    assert.equal(
      (await runProgram(program)).replace(/\s/g, ''),
      program.printed.replace(/\s/g, ''),
    );
  });
}

function findKysely(mark: string): Program {
  const program = programs.find((one) => one.heading === 'Kysely' && one.mark === mark);
  assert.ok(program);
  return program;
}

test('a Kysely migration that fails inside a transaction changes no row', async () => {
  const { mark, text } = findKysely('');
  const failing = text.replace("name: 'Bob'", "nickname: 'Bob'");
  const printed = await runProgram({
    mark,
    text: failing.replace('await migrator.migrateDown(),', ''),
  });
  assert.match(printed, /^Unknown column/);
  assert.deepEqual(await plain.database.query('select name from owner'), []);
});

for (const [mark, { database }] of Object.entries({ '': plain, drivers: withDrivers })) {
  test(`a Kysely migrator (${mark || '/v1'}) is refused while another one holds the lock, and leaves it locked`, async () => {
    await database.query('update kysely_migration_lock set is_locked = 1');
    const printed = (await runProgram(findKysely(mark))).trim().split('\n');
    assert.deepEqual(
      [...new Set(printed)],
      ['kysely_migration_lock is locked by another migrator'],
    );
    assert.deepEqual(await database.query('select is_locked from kysely_migration_lock'), [
      { is_locked: 1 },
    ]);
  });
}

test('GET_LOCK, which Kysely would use, ends with its request', async () => {
  const select = async (expression: string) => {
    const reply = await plain.gateway.post('/v1/query', { sql: `select ${expression}` });
    return (JSON.parse(reply.text) as { rows: unknown }).rows;
  };
  assert.equal(String(await select("get_lock('migration', 0)")), '1');
  assert.equal(String(await select("is_free_lock('migration')")), '1');
});
