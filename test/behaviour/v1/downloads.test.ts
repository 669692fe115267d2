// The promises of long replies of /v1: whole in every format, in flat memory, compressed or not.
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { growthOf, heldBack, readersOf } from '../../support/flat-memory.ts';
import { parseStrictCsv } from '../../support/strict-csv.ts';
import { useGateway } from '../../support/use-gateway.ts';
import {
  bigRows,
  codings,
  collect,
  createBig,
  csv,
  denseBytes,
  denseRows,
  json,
  linesOf,
  ndjson,
  open,
  selectBig,
  selectDense,
  textOf,
  ways,
} from '../../support/v1-streams.ts';

const megabyte = 1024 ** 2;

const { gateway, database } = useGateway({ workers: 1 }, { prepare: createBig });

/** The growth of the worker's memory during `work`. */
const growth = (work: () => Promise<unknown>) => growthOf(gateway.workers()[0] ?? 0, work);

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

test('brings every row of a long result whole in every format, in flat memory', async (t) => {
  const warmUp = `${selectBig} where n < 10000`;
  for (const way of ways) await collect(await open({ to: gateway, sql: warmUp, ...way }));
  for (const way of ways) {
    let body: Buffer = Buffer.alloc(0);
    const grown = await growth(async () => {
      body = await collect(await open({ to: gateway, sql: selectBig, ...way }));
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
      if (n !== String(index) || a !== textOf(index)) assert.fail(`row ${index}: ${n} ${a}`);
    }
  }
});

test('a reader that takes nothing holds back MySQL, with or without compression, and gets the rest later', async () => {
  for (const coding of codings) {
    let reply: IncomingMessage | undefined;
    const grown = await growth(async () => {
      reply = await open({ to: gateway, sql: selectDense, type: ndjson, coding });
      reply.pause();
      await heldBack(database, 'big');
    });
    assert.ok(grown < 20_000_000, `${coding}: ${grown} bytes`);
    const body = await collect(reply as IncomingMessage);
    assert.ok(body.length > denseBytes * denseRows, `${body.length}`);
    const end = `\n{"end":{"row_count":${denseRows},"truncated":false}}\n`;
    assert.ok(body.subarray(-end.length).equals(Buffer.from(end)));
  }
});

test('a reader that leaves in the middle ends its statement', async () => {
  for (const rows of ['array', 'object']) {
    const replies = await Promise.all(
      ways.map((way) => open({ to: gateway, sql: selectBig, ...way, rows })),
    );
    for (const reply of replies) reply.once('error', () => {});
    await Promise.all(replies.map((reply) => new Promise((done) => reply.once('data', done))));
    for (const reply of replies) reply.destroy();
  }
  await eventually('nothing runs', async () => (await readersOf(database, 'big')).length === 0);
  assert.equal((await open({ to: gateway, sql: 'select 1', type: json })).statusCode, 200);
});
