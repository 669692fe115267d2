// The promise of replies of /v1 that fail after they have begun: cut anywhere, they are never taken for whole.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Connection, RowDataPacket } from 'mysql2/promise';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';
import {
  codings,
  collect,
  collectUntilCut,
  contentOf,
  createBig,
  linesOf,
  ndjson,
  open,
  selectBig,
  selectDense,
  types,
  ways,
} from '../../support/v1-streams.ts';

const { gateway, database, proxy } = useProxiedGateway({ workers: 1 }, { prepare: createBig });

/** The client's view of a reply: does it say that it is complete? */
function looksWhole(type: string, { isCut, body }: { isCut: boolean; body: Buffer }): boolean {
  const lastLine = body.toString().trimEnd().split('\n').at(-1) ?? '';
  return type === ndjson ? /^\{"end":/.test(lastLine) : !isCut;
}

test('cut anywhere by the database, a reply is a failure for its reader', async () => {
  // Places in the columns, in the first rows, around the end of the part that is held back, and far behind it.
  for (const afterBytes of [64, 9_041, 65_536, 71_003, 300_017, 1_234_567, 3_000_001]) {
    const rule = proxy.on(/from big/, { kind: 'cut-reply', afterBytes });
    const reported = await Promise.all(
      ways.map(async (way) => {
        const reply = await open({ to: gateway, sql: selectBig, ...way });
        return { ...way, status: reply.statusCode, ...(await collectUntilCut(reply)) };
      }),
    );
    rule.remove();
    for (const { type, coding, status, isCut, body } of reported) {
      const what = `${type} ${coding} cut after ${afterBytes}`;
      if (status === 502) {
        assert.equal((JSON.parse(body.toString()) as Problem).code, 'CONNECTION_LOST', what);
        continue;
      }
      assert.equal(status, 200, what);
      assert.ok(!looksWhole(type, { isCut, body }), what);
      assert.equal(isCut, type !== ndjson, what);
      if (type === ndjson) assert.equal(errorOf(body)?.code, 'CONNECTION_LOST', what);
    }
  }
});

type Problem = {
  readonly code: string;
  readonly status: number;
  readonly outcome: string;
  readonly errno?: number;
  readonly request_id: string;
};

/** The problem of the last line; all lines before it are whole. */
function errorOf(body: Buffer): Problem | undefined {
  linesOf(body);
  const last = body.toString().trimEnd().split('\n').at(-1);
  return (JSON.parse(String(last)) as { error?: Problem }).error;
}

test("MySQL's own error after the first byte ends lines with the problem, and resets the others", async () => {
  const sql =
    'select n, b, (select d from digits where n = 15000 union select 1 from digits where n = 15000) from big';
  for (const way of ways) {
    const reply = await open({ to: gateway, sql, ...way });
    assert.equal(reply.statusCode, 200);
    const { isCut, body } = await collectUntilCut(reply);
    assert.equal(isCut, way.type !== ndjson);
    if (isCut) continue;
    const error = errorOf(body);
    assert.deepEqual([error?.errno, error?.status, error?.outcome], [1242, 422, 'failed']);
    assert.equal(error?.request_id, reply.headers['x-request-id']);
  }
});

test('a worker that is killed leaves nothing that looks whole', async () => {
  // The test reads nothing before, and what is not sent yet is more than fits into the buffers between.
  const replies = await Promise.all(
    ways.map((way) => open({ sql: selectDense, ...way, to: gateway })),
  );
  const [worker = 0] = gateway.workers();
  process.kill(worker, 'SIGKILL');
  const reported = replies.map(collectUntilCut);
  for (const [index, { isCut, body }] of (await Promise.all(reported)).entries()) {
    const { type, coding } = ways[index] as (typeof ways)[number];
    assert.ok(isCut, `${type} ${coding}`);
    if (type === ndjson) assert.ok(!looksWhole(type, { isCut, body }));
  }
  await eventually('another worker serves', async () => {
    const [next] = gateway.workers();
    return next !== worker && (await gateway.get('/readyz')).status === 200;
  });
});

test('the last line reports a reply that is too large, and one that a stop ends', async () => {
  const settings = { workers: 1, max_result_bytes: '600KiB', drain_timeout: '100ms' };
  const other = await startGateway({ database, settings });
  const keeper = await database.connect();
  try {
    for (const type of types) {
      const reply = await open({ sql: selectBig, type, to: other });
      assert.equal(reply.statusCode, 200);
      const { isCut, body } = await collectUntilCut(reply);
      assert.equal(isCut, type !== ndjson);
      if (!isCut) assert.equal(errorOf(body)?.code, 'RESULT_TOO_LARGE');
    }
    await lock(keeper);
    const stopped = await Promise.all(
      codings.map((coding) => open({ sql: slow(), type: ndjson, coding, to: other })),
    );
    const bodies = stopped.map(collect);
    await other.stop();
    for (const body of await Promise.all(bodies)) assert.equal(errorOf(body)?.code, 'STOPPING');
  } finally {
    keeper.destroy();
    await other.stop().catch(() => {});
  }
});

/** Streams 400 KB that compress well, and then waits for a lock of the server's that another connection has. */
const slow = () =>
  `select n, repeat('say so ', 10), if(n < 5000, 0, get_lock('${database.name}', 20)) as locked from big where n < 5001`;

/** Locks the table on this connection. */
async function lock(keeper: Connection): Promise<void> {
  const [[row] = []] = await keeper.query<RowDataPacket[]>(
    `select get_lock('${database.name}', 30) as held`,
  );
  assert.equal(Number(row?.held), 1);
}

test('the first rows are not held back, compressed or not', async () => {
  const keeper = await database.connect();
  try {
    for (const way of ways) {
      await lock(keeper);
      const reply = await open({ to: gateway, sql: slow(), ...way });
      let text = '';
      const content = contentOf(reply)[Symbol.asyncIterator]();
      while (text.length < 250_000) text += (await content.next()).value?.toString();
      await keeper.query(`do release_lock('${database.name}')`);
      for (let next = await content.next(); next.done !== true; next = await content.next()) {
        text += next.value.toString();
      }
      assert.ok(text.length > 350_000);
    }
  } finally {
    keeper.destroy();
  }
});
