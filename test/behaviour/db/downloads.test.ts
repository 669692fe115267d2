// The promise of long results: memory stays flat however many read and however slowly, and readers that leave
// take nothing with them.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { bytesBeyondBuffers, growthOf, heldBack, readersOf } from '../../support/flat-memory.ts';
import { openRaw, type RawConnection } from '../../support/http.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

const megabyte = 1024 ** 2;
const pool = 10;
/** DBHTTPD_TEST_BIG_ROWS gives more, up to 100,000. */
const bigRows = Number(process.env.DBHTTPD_TEST_BIG_ROWS ?? 20_000);

const { gateway, database } = useGateway(
  { workers: 1, pool },
  {
    prepare: async (database) => {
      await database.query('create table digits (d int primary key)');
      await database.query('insert into digits values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)');
      await database.query('create table big (n int primary key, a char(240), b varchar(240))');
      await database.query(
        `insert into big select v.d*10000+w.d*1000+x.d*100+y.d*10+z.d as n, repeat('a', 240), repeat('b', 236)
         from digits v, digits w, digits x, digits y, digits z having n < ?`,
        [bigRows],
      );
    },
  },
);

const all = 'select n, a, b from big';
const rowBytes = 480;
/** How often `big` must be read until MySQL waits for a reader that takes nothing. */
const times = Math.ceil(bytesBeyondBuffers() / (rowBytes * bigRows));
const manyTimes = `${all}, digits v, digits w where 10 * v.d + w.d < ${times}`;

const worker = () => gateway.workers()[0] ?? 0;
const growth = (work: () => Promise<unknown>) => growthOf(worker(), work);
const downloading = () => readersOf(database, 'big');

async function request(SQL: string): Promise<RawConnection> {
  const client = await openRaw(gateway.port, { timeoutMs: 60_000 });
  const query = encodeURIComponent(JSON.stringify({ SQL }));
  client.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return client;
}

/** Reads a reply to its last chunk without keeping it, and counts its rows. */
function readRows({ socket, received }: RawConnection): Promise<number> {
  const lastChunk = Buffer.from('0\r\n\r\n');
  // Those around the names, the types and the rows.
  const otherBrackets = 3;
  socket.removeAllListeners('data');
  return new Promise((resolve, reject) => {
    let brackets = countOf('[', received());
    let end = Buffer.alloc(0);
    socket.on('data', (bytes: Buffer) => {
      brackets += countOf('[', bytes);
      end = Buffer.concat([end, bytes.subarray(-lastChunk.length)]).subarray(-lastChunk.length);
      if (!end.equals(lastChunk)) return;
      socket.destroy();
      resolve(brackets - otherBrackets);
    });
    socket.once('end', () => reject(new Error(`ended after ${brackets} brackets`)));
  });
}

function countOf(text: string, bytes: Buffer | string): number {
  let count = 0;
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) count += 1;
  return count;
}

async function download(SQL: string): Promise<number> {
  return readRows(await request(SQL));
}

test('brings eight readers at once every row of a long result in flat memory', async (t) => {
  for (let round = 0; round < 3; round += 1) await download(all);
  let rows: number[] = [];
  const grown = await growth(async () => {
    rows = await Promise.all(Array.from({ length: 8 }, () => download(all)));
  });
  t.diagnostic(`memory grew by ${(grown / megabyte).toFixed(1)} MB`);
  assert.deepEqual(rows, Array(8).fill(bigRows));
  // Together they have 77 MB and more.
  assert.ok(grown < 25_000_000, `${grown} bytes`);
});

test('stops MySQL while a reader takes nothing, and goes on when it does', async (t) => {
  const client = await request(manyTimes);
  const grown = await growth(async () => {
    client.socket.pause();
    await heldBack(database, 'big');
  });
  t.diagnostic(`memory grew by ${(grown / megabyte).toFixed(1)} MB`);
  assert.ok(grown < 25_000_000, `${grown} bytes`);
  const rows = readRows(client);
  client.socket.resume();
  assert.equal(await rows, times * bigRows);
});

test('frees the connection of a reader that took nothing and left', async () => {
  const client = await request(manyTimes);
  client.socket.pause();
  await eventually('it runs', async () => (await downloading()).length === 1);
  client.reset();
  await eventually('nothing runs', async () => (await downloading()).length === 0);
});

test('keeps its pool whole when 100 downloads are aborted in the middle', async () => {
  const before = worker();
  const abort = async (index: number) => {
    const client = await request(all);
    await client.anything();
    if (index % 2 === 0) client.reset();
    else client.socket.destroy();
  };
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => abort(index)));
  }
  const answered = await Promise.all(
    Array.from({ length: 100 }, (_, index) => gateway.db({ SQL: `select ${index} as n` })),
  );
  answered.forEach((reply, index) => {
    assert.equal(reply.status, 200);
    assert.match(reply.text, new RegExp(`"ROWS":\\[\\[${index}\\]\\]`));
  });
  await eventually('nothing runs', async () => (await downloading()).length === 0);
  await eventually('the pool is as it was', async () => {
    const sql = 'select id from information_schema.processlist where db = ?';
    const open = await database.query(sql, [database.name]);
    // The control connection, the readiness probe, and the one that counts.
    return open.length <= pool + 3;
  });
  assert.equal(await readMetric(gateway, 'dbhttpd_worker_up'), 1);
  assert.equal(worker(), before);
});

test('leaves no warning of the runtime in the log, however often a reader was slow', () => {
  assert.doesNotMatch(gateway.log(), /warning/i);
});
