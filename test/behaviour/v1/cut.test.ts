// The promise of replies of /v1 that fail after they have begun: cut anywhere, they are never taken for whole.
// Must not measure time.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import {
  codings,
  collect,
  collectUntilCut,
  contentOf,
  createBig,
  linesOf,
  ndjson,
  open,
  types,
  ways,
} from '../../support/v1-streams.ts';

let database: Database;
let proxied: ProxiedDatabase;
let gateway: Gateway;
before(async () => {
  database = await startDatabase();
  proxied = await startProxiedDatabase(database);
  await createBig(database, 80_000);
  gateway = await startGateway({ database: proxied.target, settings: { workers: 1 } });
});
after(async () => {
  await gateway?.stop();
  await proxied?.stop();
  await database?.stop();
});

const all = 'select n, a, b from big';
/** Does not become small when it is compressed. */
const dense = 'select n, sha2(n, 512), sha2(-n, 512), sha2(n + 0.5, 512) from big';

/** As a client would: what is there, and does it say that it is whole? */
function looksWhole(type: string, { isCut, body }: { isCut: boolean; body: Buffer }): boolean {
  const lastLine = body.toString().trimEnd().split('\n').at(-1) ?? '';
  return type === ndjson ? /^\{"end":/.test(lastLine) : !isCut;
}

test('cut anywhere by the database, a reply is a failure for its reader', async () => {
  const places = [1, 17_000, 64_000, 90_000, 300_000, 1_234_567, 3_000_001].map(
    (most) => Math.floor(Math.random() * most) + 64,
  );
  for (const afterBytes of places) {
    const rule = proxied.on(/from big/, { kind: 'cut-reply', afterBytes });
    const told = await Promise.all(
      ways.map(async (way) => {
        const reply = await open({ to: gateway, sql: all, ...way });
        return { ...way, status: reply.statusCode, ...(await collectUntilCut(reply)) };
      }),
    );
    rule.remove();
    for (const { type, coding, status, isCut, body } of told) {
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
    'select n, b, (select d from digits where n = 30000 union select 1 from digits where n = 30000) from big';
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
  const other = await startGateway({ database, settings: { workers: 1 } });
  try {
    // Nothing is read before: what is not on its way yet is more than fits between.
    const replies = await Promise.all(ways.map((way) => open({ sql: dense, ...way, to: other })));
    for (const worker of other.workers()) process.kill(worker, 'SIGKILL');
    const told = replies.map(collectUntilCut);
    for (const [index, { isCut, body }] of (await Promise.all(told)).entries()) {
      const { type, coding } = ways[index] as (typeof ways)[number];
      assert.ok(isCut, `${type} ${coding}`);
      if (type === ndjson) assert.ok(!looksWhole(type, { isCut, body }));
    }
  } finally {
    await other.stop();
  }
});

test('what is too large, and what a stop ends, is told in the last line', async () => {
  const settings = { workers: 1, max_result_bytes: '600KiB', drain_timeout: '100ms' };
  const other = await startGateway({ database, settings });
  const keeper = await database.connect();
  try {
    for (const type of types) {
      const reply = await open({ sql: all, type, to: other });
      assert.equal(reply.statusCode, 200);
      const { isCut, body } = await collectUntilCut(reply);
      assert.equal(isCut, type !== ndjson);
      if (!isCut) assert.equal(errorOf(body)?.code, 'RESULT_TOO_LARGE');
    }
    await keeper.query("do get_lock('v1-streams', 5)");
    const stopped = await Promise.all(
      codings.map((coding) => open({ sql: slow, type: ndjson, coding, to: other })),
    );
    const bodies = stopped.map(collect);
    await other.stop();
    for (const body of await Promise.all(bodies)) assert.equal(errorOf(body)?.code, 'STOPPING');
  } finally {
    keeper.destroy();
    await other.stop().catch(() => {});
  }
});

/** Streams 400 KB that compress well, and then waits for a lock that another has. */
const slow =
  "select n, repeat('say so ', 10), if(n < 5000, 0, get_lock('v1-streams', 20)) as locked from big where n < 5001";

test('the first rows are not held back, compressed or not', async () => {
  const keeper = await database.connect();
  try {
    for (const way of ways) {
      await keeper.query("do get_lock('v1-streams', 5)");
      const reply = await open({ to: gateway, sql: slow, ...way });
      let text = '';
      const content = contentOf(reply)[Symbol.asyncIterator]();
      while (text.length < 250_000) text += (await content.next()).value?.toString();
      await keeper.query("do release_lock('v1-streams')");
      for (let next = await content.next(); next.done !== true; next = await content.next()) {
        text += next.value.toString();
      }
      assert.ok(text.length > 350_000);
    }
  } finally {
    keeper.destroy();
  }
});
