// docs/guides/drivers.md: every example runs as it stands, with a real gateway, and prints what the page shows below it. scripts/prisma runs the
// examples for a client that Prisma has generated.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { type Block, findBlocks } from '../../support/pages/page-blocks.ts';
import { useGateway } from '../../support/use-gateway.ts';

const run = promisify(execFile);
const blocks = findBlocks(readFileSync('docs/guides/drivers.md', 'utf8'));
const token = 'a-long-random-text';
const address = '127.0.0.1:9090';

const { gateway } = useGateway(
  { workers: 1, token, drivers: 'planetscale' },
  {
    prepare: async (database) => {
      for (const { language, text } of blocks) if (language === 'sql') await database.query(text);
    },
  },
);

test('the page has an example of each, and what it prints', () => {
  const headings = blocks.filter(({ language }) => language === 'js').map(({ heading }) => heading);
  assert.deepEqual(
    [...new Set(headings)],
    ['The driver itself', 'In an edge function', 'drizzle', 'Kysely', 'Prisma', 'Transactions'],
  );
});

for (const [index, block] of blocks.entries()) {
  if (block.language !== 'js' || block.mark === 'prisma') continue;
  test(`${block.heading}: block ${index} prints what the page says`, async () => {
    const answer = blocks[index + 1];
    assert.equal(answer?.language, 'json');
    // MySQL names a key with its table.
    const printed = (await runBlock(block)).replace("'orders.by_customer'", "'by_customer'");
    assert.deepEqual(JSON.parse(printed), JSON.parse(answer?.text ?? ''));
  });
}

async function runBlock({ mark, text }: Block): Promise<string> {
  const program = mark === 'edge' ? asFunction(text) : text;
  const here = program.replaceAll(address, `127.0.0.1:${gateway.port}`);
  return (await run(process.execPath, ['--input-type=module', '--eval', here])).stdout;
}

/** Imitates an edge runtime: it calls the function with its secrets. */
function asFunction(program: string): string {
  const url = `http://app:${token}@${address}`;
  return `${program.replace('export default', 'const worker =')}
    const reply = await worker.fetch(new Request('https://edge.example/'), { DATABASE_URL: '${url}' });
    console.log(await reply.text());`;
}
