// docs/guides/other-languages.md: each program runs as it stands where its language is installed, prints what the page shows although replies
// are lost, and does nothing twice.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { runBash } from '../../support/bash.ts';
import { type HttpFront, startHttpFront } from '../../support/http-front.ts';
import { type Block, findBlocks } from '../../support/pages/page-blocks.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';

const blocks = findBlocks(readFileSync('docs/guides/other-languages.md', 'utf8'));
const folder = 'docs/guides/other-languages';
const workspace = createWorkspace('languages', () => {});

let front: HttpFront;
after(async () => {
  await front?.stop();
  workspace.remove();
});
const { gateway, database } = useGateway(
  { workers: 1, idempotency_table: 'request_keys' },
  {
    prepare: async (prepared) => {
      await prepared.query(blocks.find(({ language }) => language === 'sql')?.text ?? '');
      await prepared.query(describeCreation(parseIdempotencyTable('request_keys', prepared.name)));
    },
    ready: async () => {
      front = await startHttpFront(gateway.url);
    },
  },
);

const languages = [
  { program: 'python3', command: ['python3', 'purchase.py'] },
  { program: 'php', command: ['php', 'purchase.php'] },
  { program: 'go', command: ['go', 'run', 'purchase.go'] },
] as const;

/** Whether it is on the PATH. A language that is not installed is skipped, and the reason printed. */
function isHere(t: TestContext, program: string): boolean {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const isThere = folders.some((one) => existsSync(join(one, program)));
  if (!isThere) t.skip(`${program} is not installed`);
  return isThere;
}

async function run(script: string): Promise<string> {
  const env = {
    ...process.env,
    DBHTTPD_URL: front.url,
    GOCACHE: join(workspace.path, 'go'),
    PYTHONDONTWRITEBYTECODE: '1',
  };
  return runBash(script, { cwd: folder, env });
}

/** Everything that a client may meet instead of the reply to its write: the gateway's refusal, no reply, half of one, the page of a proxy. */
const misfortunes = [
  {
    kind: 'answer',
    status: 503,
    headers: { 'Content-Type': 'application/problem+json', 'Retry-After': '1' },
    body: '{"code":"QUEUE_FULL","outcome":"not_executed","retryable":true,"detail":"busy"}\n',
  },
  { kind: 'drop', when: 'asked' },
  { kind: 'cut', afterBytes: 20 },
  { kind: 'answer', status: 502, body: '<html>502 Bad Gateway</html>' },
] as const;

for (const { program, command } of languages) {
  test(`${program}: prints what the page shows, whatever happens to the replies`, async (t) => {
    if (!isHere(t, program)) return;
    const index = blocks.findIndex(
      ({ language, text }) => language === 'sh' && text.includes(`${program} `),
    );
    const [asked, shown] = [blocks[index], blocks[index + 1]] as [Block, Block];
    front.next(...misfortunes);
    const from = front.seen.length;
    const printed = await run(asked.text.replace(/^export .*$/m, ''));
    assert.equal(printed, shown.text);
    const sent = front.seen.slice(from, from + misfortunes.length + 1);
    assert.equal(new Set(sent.map(({ body }) => body)).size, 1);
    assert.equal(new Set(sent.map(({ headers }) => headers['idempotency-key'])).size, 1);
  });

  test(`${program}: without a key, sends nothing again whose reply was lost`, async (t) => {
    if (!isHere(t, program)) return;
    front.next(
      { kind: 'answer', status: 200, body: '{"affected_rows":1}' },
      { kind: 'drop', when: 'asked' },
    );
    const from = front.seen.length;
    await assert.rejects(run(`${command.join(' ')} none None 1`), /REPLY_LOST \(unknown\)/);
    assert.equal(front.seen.length - from, 2);
  });

  test(`${program}: reports an error of the database, and sends nothing again`, async (t) => {
    if (!isHere(t, program)) return;
    const from = front.seen.length;
    const wrong = `${command.join(' ')} wrong-${program} Wrong ${'9'.repeat(9)}`;
    await assert.rejects(run(wrong), /ER_WARN_DATA_OUT_OF_RANGE \(rolled_back\)/);
    assert.equal(front.seen.length - from, 1);
    assert.deepEqual(await database.query("select * from purchase where customer = 'Wrong'"), []);
  });
}
