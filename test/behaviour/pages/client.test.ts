// docs/guides/client.md: its examples compile, and run one after the other as one program.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';

const run = promisify(execFile);
const pageBlocks = (name: string) => findBlocks(readFileSync(`docs/guides/${name}.md`, 'utf8'));
const page = pageBlocks('client');
const examples = page.filter(({ language }) => language === 'ts').map(({ text }) => text);

const { gateway, database } = useGateway(
  { workers: 1, idempotency_table: 'request_keys' },
  {
    prepare: async (prepared) => {
      for (const { language, text } of [...pageBlocks('recipes'), ...page]) {
        if (language === 'sql') await prepared.query(text);
      }
      await prepared.query(describeCreation(parseIdempotencyTable('request_keys', prepared.name)));
    },
  },
);
const workspace = createWorkspace('client-page', () => {});
after(workspace.remove);

/** The names that the page leaves to its reader. `written` is what the examples have handed over. */
const readers = `
import { connect, Seen, sql } from 'dbhttpd/client';
const token: string | undefined = undefined;
const [id, owner, now, isOpen] = [1, 1, '2026-11-25 12:00:00', true];
const written: unknown[] = [];
const put = async (...row: unknown[]) => void written.push(row);
const show = (...progress: (number | null)[]) => void written.push(progress);
const file = { write: (part: string) => void written.push(part) };
const shareOf = (balance: string | undefined) => Number(balance) / 4;
`;

test('every example of the page compiles and runs', async () => {
  assert.ok(examples.length > 10, `${examples.length} examples`);
  const withoutImports = examples.map((text) => text.replace(/^import .*\n+/gm, ''));
  const [first = '', ...others] = withoutImports;
  const opened = first.replace('http://127.0.0.1:9090', gateway.url);
  // A visit is unique by its day.
  const own = others.map((text, index) => `{ const day = '2026-11-${10 + index}';\n${text}}\n`);
  const end = 'console.log(written.length > 4 && await db.one`select count(*) as n from visit`);\n';
  mkdirSync(join(workspace.path, 'node_modules'));
  symlinkSync(resolve('.'), join(workspace.path, 'node_modules/dbhttpd'));
  const program = join(workspace.path, 'examples.mts');
  writeFileSync(program, [readers, opened, ...own, end].join('\n'));
  const options = ['--strict', '--target', 'es2022', '--lib', 'es2023,dom', '--types', 'node'];
  const modules = ['--module', 'nodenext', '--typeRoots', resolve('node_modules/@types')];
  const compiler = resolve('node_modules/.bin/tsc');
  await run(compiler, [...options, ...modules, program], { cwd: workspace.path }).catch(
    ({ stdout }) => assert.fail(stdout),
  );
  const { stdout } = await run(process.execPath, [program.replace('.mts', '.mjs')]);
  assert.equal(stdout, "{ n: '2' }\n");
  assert.equal(Number((await database.query('select count(*) as n from task'))[0]?.n), 2);
});
