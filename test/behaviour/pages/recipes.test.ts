// The recipes of docs/guides: every block runs as it stands, with a real gateway, and gets the answer that its page shows.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { runBash } from '../../support/bash.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { type HttpFront, startHttpFront } from '../../support/http-front.ts';
import { type Block, findBlocks } from '../../support/pages/page-blocks.ts';

const run = promisify(execFile);
/** In this order: what one page writes, the next one reads. */
const pages = ['recipes', 'transactions', 'retries'];
const address = 'http://127.0.0.1:9090';
const origin = 'https://app.example';
const clientFile = new URL('../../../src/client/client.js', import.meta.url).href;

const blocks = pages.flatMap((name) => findBlocks(readFileSync(`docs/guides/${name}.md`, 'utf8')));
const languages = ['sh', 'js', 'python'];

let database: Database;
let gateway: Gateway;
let front: HttpFront;

before(async () => {
  database = await startDatabase();
  for (const { text } of blocks.filter(({ language }) => language === 'sql')) {
    await database.query(text);
  }
  await database.query(describeCreation(parseIdempotencyTable('request_keys', database.name)));
  gateway = await startGateway({
    database,
    settings: { workers: 1, allow_origins: origin, idempotency_table: 'request_keys' },
  });
  front = await startHttpFront(gateway.url);
});
after(async () => {
  await front?.stop();
  await gateway?.stop();
  await database.stop();
});

test('the pages have recipes in every language, and an answer behind each', () => {
  const kinds = new Set(blocks.map(({ language }) => language));
  assert.deepEqual([...kinds].sort(), ['js', 'json', 'python', 'sh', 'sql', 'text']);
  for (const [index, { language, heading }] of blocks.entries()) {
    const next = blocks[index + 1]?.language ?? '';
    if (languages.includes(language)) assert.ok(['json', 'text'].includes(next), heading);
  }
});

for (const [index, block] of blocks.entries()) {
  if (!languages.includes(block.language)) continue;
  const { heading, language, mark } = block;
  test(`${heading}: ${language} ${mark} (block ${index})`, async (t) => {
    const answer = blocks[index + 1];
    if (answer === undefined || (language === 'python' && !(await hasRequests(t)))) return;
    if (mark === 'busy') front.next(busy);
    else if (mark === 'lost') front.next({ kind: 'drop', when: 'asked' });
    const before = front.seen.length;
    const printed = await runBlock(block);
    if (mark === 'busy' || mark === 'lost')
      assert.ok(front.seen.length >= before + 2, 'it was not sent again');
    if (answer.language === 'text') assert.equal(printed.replaceAll('\r\n', '\n'), answer.text);
    else assert.deepEqual(JSON.parse(printed), JSON.parse(answer.text));
  });
}

/** A gateway's refusal of a full queue. */
const busy = {
  kind: 'answer',
  status: 503,
  headers: { 'Content-Type': 'application/problem+json', 'Retry-After': '1' },
  body: '{"code":"QUEUE_FULL","outcome":"not_executed","retryable":true,"detail":"busy"}\n',
} as const;

/** The recipes say that they need it. Looked for once: python takes its time to import it. */
const isRequestsThere = run('python3', ['-c', 'import requests']).then(
  () => true,
  () => false,
);

async function hasRequests(t: TestContext): Promise<boolean> {
  const isThere = await isRequestsThere;
  if (!isThere) t.skip('python3 with requests is not installed');
  return isThere;
}

/** Runs a block, and resolves to its output. */
async function runBlock({ language, mark, text }: Block): Promise<string> {
  const program = text.replaceAll(address, front.url);
  if (language === 'sh') return runBash(program);
  if (language === 'python') return (await run('python3', ['-c', program])).stdout;
  const module = mark === 'browser' ? asPage(program) : program;
  return (await run(process.execPath, ['--input-type=module', '--eval', module])).stdout;
}

/** Imitates a browser: a page's Origin, and the part of a reply that CORS lets the page read. */
function asPage(program: string): string {
  const preamble = `
    const { fetch } = globalThis;
    globalThis.fetch = async (input, init) => {
      const reply = await fetch(input, { ...init, headers: { ...init.headers, Origin: '${origin}', 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'empty' } });
      if (reply.headers.get('access-control-allow-origin') !== '${origin}') throw new TypeError('Failed to fetch');
      return reply;
    };`;
  const [imports = '', ...rest] = program.split('\n\n');
  return [imports.replace('/dbhttpd/client.js', clientFile), preamble, ...rest].join('\n\n');
}
