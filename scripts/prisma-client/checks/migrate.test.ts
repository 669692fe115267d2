// docs/guides/migrations.md: Prisma Migrate beside the gateway. Runs the page's command, with the schema engine if it can be downloaded.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { straight } from './clients.ts';
import { setting } from './setting.ts';

/** The blocks of the page's section about Prisma. */
const section = readFileSync('docs/guides/migrations.md', 'utf8').split('## Prisma')[1] ?? '';
const blockOf = (language: string) =>
  new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(section)?.[1] ?? '';

const target = new URL(setting.server);
target.pathname += '_migrated';
const database = target.pathname.slice(1);

const project = join(import.meta.dirname, '../migrate');
mkdirSync(join(project, 'migrations/1_pet'), { recursive: true });
writeFileSync(join(project, 'schema.prisma'), 'datasource db {\n  provider = "mysql"\n}\n');
writeFileSync(join(project, 'prisma.config.ts'), blockOf('ts'));
writeFileSync(join(project, 'migrations/migration_lock.toml'), 'provider = "mysql"\n');
writeFileSync(
  join(project, 'migrations/1_pet/migration.sql'),
  'create table pet (id int primary key);\n',
);

/** Runs the page's command with this server. Resolves to its exit code and all that it printed. */
function migrate(environment: NodeJS.ProcessEnv = {}): Promise<{ code: number; text: string }> {
  const command = blockOf('sh').replace(/MIGRATION_URL='[^']*'/, `MIGRATION_URL='${target.href}'`);
  const env = { ...process.env, CHECKPOINT_DISABLE: '1', ...environment };
  return new Promise((resolve) => {
    execFile('bash', ['--norc', '-c', command], { cwd: project, env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), text: stdout + stderr }),
    );
  });
}

test('Prisma Migrate reads the page’s configuration, and finds the server and the migration', async () => {
  const { text } = await migrate({ PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true' });
  assert.match(text, new RegExp(`"${database}" at "${target.host}"`));
  assert.match(text, /1 migration found/);
});

test('Prisma Migrate applies a migration with MySQL’s own protocol', async (context) => {
  const { code, text } = await migrate();
  if (/binaries\.prisma\.sh/.test(text)) {
    context.skip(`the schema engine cannot be downloaded: ${text.trim().split('\n').at(-1)}`);
    return;
  }
  assert.equal(code, 0, text);
  await straight.$queryRawUnsafe(`select id from \`${database}\`.pet`);
  await straight.$executeRawUnsafe(`drop database \`${database}\``);
});
