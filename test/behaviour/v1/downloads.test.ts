// The promises of long replies of /v1: whole in every format, in flat memory, compressed or not.
// Must not measure time.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { parseStrictCsv } from '../../support/strict-csv.ts';
import {
  bigRows,
  codings,
  collect,
  createBig,
  csv,
  json,
  linesOf,
  ndjson,
  open,
  ways,
} from '../../support/v1-streams.ts';

const megabyte = 1024 ** 2;

let database: Database;
let gateway: Gateway;
before(async () => {
  database = await startDatabase();
  await createBig(database);
  gateway = await startGateway({ database, settings: { workers: 1 } });
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
});

const all = 'select n, a, b from big';

const workerMemory = (field: 'VmRSS' | 'VmHWM') => {
  const status = readFileSync(`/proc/${gateway.workers()[0]}/status`, 'latin1');
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024;
};

/** The highest that the worker's memory gets while `work` lasts, above what it was before. */
async function growth(work: () => Promise<unknown>): Promise<number> {
  const before = workerMemory('VmRSS');
  writeFileSync(`/proc/${gateway.workers()[0]}/clear_refs`, '5');
  await work();
  return workerMemory('VmHWM') - before;
}

/** Rows of a whole reply, as an independent reader finds them: number and text. */
function readRows(type: string, body: Buffer): (readonly [n: string, a: string])[] {
  if (type === csv) {
    return parseStrictCsv(body)
      .slice(1)
      .map(([n, a]) => [String(n), String(a)]);
  }
  const rows =
    type === json
      ? (JSON.parse(body.toString()) as { rows: unknown[] }).rows
      : linesOf(body).slice(1, -1);
  return (rows as [number, string][]).map(([n, a]) => [String(n), a]);
}

test('brings 200,000 rows whole in every format, in flat memory', async (t) => {
  const warmUp = `${all} where n < 20000`;
  for (const way of ways) await collect(await open({ to: gateway, sql: warmUp, ...way }));
  for (const way of ways) {
    let body: Buffer = Buffer.alloc(0);
    const grown = await growth(async () => {
      body = await collect(await open({ to: gateway, sql: all, ...way }));
    });
    t.diagnostic(
      `${way.type} ${way.coding}: ${body.length} bytes, ${(grown / megabyte).toFixed(1)} MB more`,
    );
    assert.ok(grown < 10_000_000, `${way.type} ${way.coding}: ${grown} bytes`);
    assert.ok(body.length > 15_000_000, `${body.length}`);
    if (way.coding === 'gzip') continue;
    const rows = readRows(way.type, body);
    assert.equal(rows.length, bigRows);
    for (const [index, [n, a]] of rows.entries()) {
      if (n !== String(index) || a !== `say "${index % 10}",\r\n${'é'.repeat(10)}`) {
        assert.fail(`row ${index}: ${n} ${a}`);
      }
    }
  }
});

test('a reader who takes nothing holds back MySQL, compressor or not, and gets the rest later', async () => {
  // What compresses well would find room on its way.
  const sql = 'select n, sha2(n, 512), sha2(-n, 512), sha2(n + 0.5, 512) from big';
  for (const coding of codings) {
    let reply: IncomingMessage | undefined;
    const grown = await growth(async () => {
      reply = await open({ to: gateway, sql, type: ndjson, coding });
      reply.pause();
      let seen = '';
      let since = performance.now();
      await eventually('the server waits', async () => {
        const [one] = await downloading();
        const state = `${one?.id} ${one?.state}`;
        if (state !== seen || !/writing|send/i.test(state)) since = performance.now();
        seen = state;
        return performance.now() - since > 500;
      });
    });
    assert.ok(grown < 20_000_000, `${coding}: ${grown} bytes`);
    const body = await collect(reply as IncomingMessage);
    assert.ok(body.length > 70_000_000);
    const end = `\n{"end":{"row_count":${bigRows},"truncated":false}}\n`;
    assert.ok(body.subarray(-end.length).equals(Buffer.from(end)));
  }
});

const downloading = () =>
  database.query(
    "select id, state from information_schema.processlist where db = ? and info like '%from big%' and info not like '%processlist%'",
    [database.name],
  );

test('readers who leave in the middle take their statements with them', async () => {
  for (let round = 0; round < 5; round += 1) {
    const replies = await Promise.all(
      ways.map((way) =>
        open({ to: gateway, sql: all, ...way, rows: round % 2 === 0 ? 'array' : 'object' }),
      ),
    );
    for (const reply of replies) reply.once('error', () => {});
    await Promise.all(replies.map((reply) => new Promise((done) => reply.once('data', done))));
    for (const reply of replies) reply.destroy();
  }
  await eventually('nothing runs', async () => (await downloading()).length === 0);
  assert.equal((await open({ to: gateway, sql: 'select 1', type: json })).statusCode, 200);
});
