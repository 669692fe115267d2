// Readers that take little of large replies: while others wait, they have at most half of the pool, and none is reset while no request
// waits.
// Waits 20 s: a reader is slow once its pace over two seconds is known.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterEach, test } from 'node:test';
import { cellOf, outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { beginHeld } from '../../support/held.ts';
import { openRaw } from '../../support/http.ts';
import { getReport } from '../../support/reports.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { formatRequest } from '../../support/worker-connections.ts';

const pool = 4;
const crowd = 6;

const readers = new Set<Reader>();

const { gateway } = useGateway(
  {
    workers: 1,
    pool,
    access_log: 'json',
    session_reset: 'always',
    // Two seconds pass until two of a crowd are reset, and others come before the requests under test.
    max_wait: '1m',
    statement_timeout: '5m',
    transaction_idle_timeout: '1m',
    transaction_timeout: '5m',
  },
  {
    prepare: async (own) => {
      await own.query(`
        create table wide (v text); insert into wide values (repeat('x', 1000));
        create table many (n int primary key);
        insert into many with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
          select n from c`);
    },
  },
);

afterEach(async () => {
  for (const { socket } of readers) socket.destroy();
  readers.clear();
  await eventually('all is given back', async () => (await busy()) === 0);
});

/** 800 MB. */
const large = 'select wide.v from wide, many a, many b';
const busy = () => readMetric(gateway, 'dbhttpd_pool_connections', { state: 'busy' });
const givenUp = () => readMetric(gateway, 'dbhttpd_readers_given_up_total');

type Reader = { readonly socket: Socket; readonly bytes: () => number; hasEnded: () => boolean };

/** Requests a large reply, and reads nothing of it. */
async function stall(): Promise<Reader> {
  const socket = connect({ port: gateway.port, host: '127.0.0.1' });
  let bytes = 0;
  let ended = false;
  socket.on('error', () => {});
  socket.on('close', () => {
    ended = true;
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  const query = encodeURIComponent(JSON.stringify({ SQL: large }));
  socket.write(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  socket.pause();
  const reader = { socket, bytes: () => bytes, hasEnded: () => ended };
  readers.add(reader);
  return reader;
}

/** Read at once, fifty times a second: 25 MB a second. The system reports reads in portions of up to a megabyte or two. */
const mouthful = 512 * 1024;

/** A machine that does not let the reader read for as long has the gateway take it for slow, rightly. */
const maxGapMs = 1_500;

/** Goes on reading, however many bytes come at once. `longestGapMs`: how long it did not read, since the machine paused. */
function flow({ socket, bytes }: Reader): { end: () => void; longestGapMs: () => number } {
  let until = 0;
  let last = performance.now();
  let longestMs = 0;
  const stopWhenFull = () => {
    if (bytes() >= until) socket.pause();
  };
  socket.on('data', stopWhenFull);
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - last);
    last = performance.now();
    until = bytes() + mouthful;
    socket.resume();
  }, 20);
  return {
    end: () => {
      clearInterval(timer);
      socket.off('data', stopWhenFull);
    },
    longestGapMs: () => Math.max(longestMs, performance.now() - last),
  };
}

async function phases(): Promise<string[]> {
  const { requests } = (await getReport(gateway, '/v1/requests')).json<{
    requests: { phase: string }[];
  }>();
  return requests.map(({ phase }) => phase);
}

test('one after the other is reset until half of the pool is left to others', async () => {
  const before_ = await givenUp();
  await Promise.all(Array.from({ length: crowd }, stall));
  await eventually('the crowd is there', async () => (await busy()) === pool);
  // Some of them were before it in the queue, and are reset two at a time.
  for (let n = 0; n < 20; n += 1) {
    assert.equal(cellOf(await gateway.dbPost({ SQL: `select ${n}` })), n);
  }
  // Once one connection is free, no request waits any more, and no reader is reset.
  assert.ok((await givenUp()) - before_ > crowd - pool);
  const reported = await eventually('the log says so', () =>
    gateway.log().match(/slow readers held connections/g),
  );
  assert.ok(reported.length <= 3, `${reported.length} lines`);
  const accessLog = `${gateway.directory}/log.access.log`;
  await eventually('and so does the access log', () =>
    readFileSync(accessLog, 'utf8').includes('"code":"STALLED"'),
  );
  assert.ok((await readMetric(gateway, 'dbhttpd_failures_total', { code: 'STALLED' })) > 0);
});

test('one that goes on reading is not reset for those that do not', async () => {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    if (await keepsReading()) return;
    for (const { socket } of readers) socket.destroy();
    await eventually('they are gone', async () => (await busy()) === 0);
  }
  assert.fail('the machine paused too often');
});

/** Resolves to whether a reader was served to the end beside stalled ones; false: the machine did not let it read. */
async function keepsReading(): Promise<boolean> {
  const reader = await stall();
  const { end, longestGapMs } = flow(reader);
  try {
    await Promise.all(Array.from({ length: pool - 1 }, stall));
    await eventually('the pool is taken', async () => (await busy()) === pool);
    const waiting = Array.from({ length: 5 }, () => gateway.dbPost({ SQL: 'select sleep(0.3)' }));
    for (const reply of await Promise.all(waiting)) assert.equal(reply.status, 200);
    if (longestGapMs() > maxGapMs) return false;
    assert.equal(reader.hasEnded(), false);
    const { bytes } = reader;
    const before_ = bytes();
    await eventually('it goes on', () => bytes() > before_ + 1_000_000);
    return true;
  } finally {
    end();
  }
}

/** Reads this many bytes a second, in twenty parts. */
function readAt({ socket, bytes }: Reader, bytesPerSecond: number): () => void {
  let until = 0;
  const stopWhenFull = () => {
    if (bytes() >= until) socket.pause();
  };
  socket.on('data', stopWhenFull);
  const timer = setInterval(() => {
    until += bytesPerSecond / 20;
    socket.resume();
  }, 50);
  return () => {
    clearInterval(timer);
    socket.off('data', stopWhenFull);
  };
}

test('readers that flow are not reset, though the kernel takes nothing for them for seconds at a time', async () => {
  const before_ = await givenUp();
  const flowing = await Promise.all(Array.from({ length: pool }, stall));
  const paces = [3_000_000, 1_000_000, 500_000, 250_000];
  const ends = flowing.map((reader, at) => readAt(reader, paces[at] ?? 0));
  try {
    await eventually('the pool is taken', async () => (await busy()) === pool);
    // They wait for longer than it takes to see that a reader is slow.
    const waiting = Array.from({ length: 3 }, () =>
      gateway.dbPost({ SQL: 'select 1', TIMEOUT: 16_000 }),
    );
    for (const reply of await Promise.all(waiting)) {
      assert.equal(outcomeOf(reply), '503 WAITED_TOO_LONG not_executed');
    }
    assert.equal(await givenUp(), before_);
    assert.ok(flowing.every((reader) => !reader.hasEnded()));
  } finally {
    for (const end of ends) end();
  }
});

test('one in a transaction that its client holds is counted once, with that', async () => {
  const held = [await beginHeld(gateway), await beginHeld(gateway)];
  const before_ = await givenUp();
  const inIt = await openRaw(gateway.port);
  try {
    const asked = { sql: large, transaction: held[0]?.token };
    inIt.send(formatRequest('POST', '/v1/query', asked));
    await inIt.anything();
    inIt.socket.pause();
    await Promise.all([stall(), stall()]);
    await eventually('the pool is taken', async () => (await busy()) === pool);
    // More than the first reset leaves room for: a request still waits when the second reader has stalled.
    const waiting = Array.from({ length: 8 }, () => gateway.dbPost({ SQL: 'select sleep(0.5)' }));
    await eventually('the others are reset', async () => (await givenUp()) === before_ + 2);
    for (const reply of await Promise.all(waiting)) assert.equal(reply.status, 200);
    assert.equal(await givenUp(), before_ + 2);
    assert.deepEqual(await phases(), ['stalled']);
    assert.equal((await held[1]?.commit())?.status, 200);
  } finally {
    inIt.socket.destroy();
  }
});

test('while no request waits, no reader is reset', async () => {
  const before_ = await givenUp();
  const stalled = await Promise.all(Array.from({ length: pool }, stall));
  await eventually('the pool is taken', async () => (await busy()) === pool);
  await eventually('the gateway sees that they have stalled', async () => {
    return (await phases()).every((phase) => phase === 'stalled');
  });
  assert.equal(await givenUp(), before_);
  assert.ok(stalled.every((reader) => !reader.hasEnded()));
  assert.equal(await busy(), pool);
});
