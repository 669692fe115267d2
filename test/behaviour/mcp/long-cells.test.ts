// A cell of 64 MiB in a result of the tool `query`: it is shortened like any other, and the worker holds one such row at a time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownServerOnly } from '../../support/database/mariadb.ts';
import { growthOf } from '../../support/flat-memory.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createAgent } from './support/agent.ts';

const mib = 2 ** 20;
const bytes = 64 * mib;
/** The row, its packets before they are one, and garbage that was not collected yet. Kept rows of all calls would be more. */
const maxGrowth = 4.5 * bytes;
const calls = 5;

const { gateway } = useGateway(
  { workers: 1, pool: 2, mcp: 'on' },
  { serverArguments: ['--max-allowed-packet=128M'] },
);

test('a cell of 64 MiB is shortened, and no memory remains with it', async (t) => {
  if (!ownServerOnly(t)) return;
  const agent = createAgent(() => gateway);
  const sql = `select repeat('x', ${bytes}) as t, 'n' as n`;
  const ask = async () => {
    const { rows, shortened_cells: shortened } = await agent.query(sql, { timeout_ms: 30_000 });
    assert.deepEqual(rows, [[`${'x'.repeat(1024)}… (${bytes} bytes)`, 'n']]);
    assert.equal(shortened, 1);
  };
  const [pid = 0] = gateway.workers();
  const grown = await growthOf(pid, async () => {
    for (let call = 0; call < calls; call += 1) await ask();
  });
  assert.ok(grown < maxGrowth, `${grown / mib} MiB for ${calls} cells of ${bytes / mib} MiB`);
});
