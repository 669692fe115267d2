// The promise of long results: memory stays flat however many read and however slowly, and readers who leave
// take nothing with them.
// Must not measure time.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import test, { after, before } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw, type RawConnection } from '../../support/http.ts';

const megabyte = 1024 ** 2;
const pool = 10;
let database: Database;
let gateway: Gateway;
let worker: number;
before(async () => {
  database = await startDatabase();
  await database.query('create table digits (d int primary key)');
  await database.query('insert into digits values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)');
  await database.query('create table big (n int primary key, a char(120), b varchar(120))');
  await database.query(
    `insert into big select v.d*10000+w.d*1000+x.d*100+y.d*10+z.d, repeat('a', 120), repeat('b', 116)
     from digits v, digits w, digits x, digits y, digits z`,
  );
  gateway = await startGateway({ database, settings: { workers: 1, pool } });
  [worker = 0] = gateway.workers();
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
});

const all = 'select n, a, b from big';
const fourTimes = `${all}, (select 1 as k union all select 2 union all select 3 union all select 4) k`;

function memory(field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${worker}/status`, 'latin1');
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024;
}

/** The highest that memory gets while `work` lasts, above what it was before. */
async function growth(work: () => Promise<unknown>): Promise<number> {
  const before = memory('VmRSS');
  // 5 makes the kernel forget the high-water mark so far (proc(5), clear_refs).
  writeFileSync(`/proc/${worker}/clear_refs`, '5');
  await work();
  return memory('VmHWM') - before;
}

async function request(SQL: string): Promise<RawConnection> {
  const client = await openRaw(gateway.port, { timeoutMs: 60_000 });
  const query = encodeURIComponent(JSON.stringify({ SQL }));
  client.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return client;
}

/** Reads a reply to its last chunk without keeping it. */
async function download(SQL: string): Promise<number> {
  const { socket } = await request(SQL);
  socket.removeAllListeners('data');
  return new Promise((resolve, reject) => {
    let length = 0;
    socket.on('data', (bytes: Buffer) => {
      length += bytes.length;
      if (!bytes.subarray(-5).equals(Buffer.from('0\r\n\r\n'))) return;
      socket.destroy();
      resolve(length);
    });
    socket.once('end', () => reject(new Error(`ended after ${length} bytes`)));
  });
}

const connections = () =>
  database.query(
    'select id, command, state, info from information_schema.processlist where db = ?',
    [database.name],
  );

/** The gateway's connections that run a statement on the big table. */
const downloading = async () =>
  (await connections()).filter(
    ({ info }) => /from big/.test(String(info)) && !/processlist/.test(String(info)),
  );

test('brings 100,000 rows to eight readers at once in flat memory', async (t) => {
  for (let round = 0; round < 3; round += 1) await download(all);
  let lengths: number[] = [];
  const grown = await growth(async () => {
    lengths = await Promise.all(Array.from({ length: 8 }, () => download(all)));
  });
  t.diagnostic(`${lengths[0]} bytes each, memory grew by ${(grown / megabyte).toFixed(1)} MB`);
  assert.ok(lengths.every((length) => length > 24_900_000));
  assert.ok(grown < 25_000_000, `${grown} bytes`);
});

test('stops MySQL while a reader takes nothing, and goes on when it does', async (t) => {
  let client: RawConnection | undefined;
  const grown = await growth(async () => {
    client = await request(fourTimes);
    client.socket.pause();
    let seen = '';
    let since = performance.now();
    // Still the same statement, waiting for its reader, for a second.
    await eventually('the server waits', async () => {
      const [one] = await downloading();
      const state = `${one?.id} ${one?.state}`;
      const waits = one !== undefined && /writing|send/i.test(String(one.state));
      if (state !== seen || !waits) since = performance.now();
      seen = state;
      return performance.now() - since > 1000;
    });
  });
  t.diagnostic(`memory grew by ${(grown / megabyte).toFixed(1)} MB`);
  assert.ok(grown < 25_000_000, `${grown} bytes`);
  client?.socket.resume();
  const reply = await client?.reply();
  assert.equal(reply?.framing, 'chunked');
  assert.equal(JSON.parse(String(reply?.body)).RESULT.ROWS.length, 400_000);
  client?.close();
});

test('frees the connection of a reader who took nothing and left', async () => {
  const client = await request(fourTimes);
  client.socket.pause();
  await eventually('it runs', async () => (await downloading()).length === 1);
  client.reset();
  await eventually('nothing runs', async () => (await downloading()).length === 0);
});

test('keeps its pool whole when 200 downloads are aborted in the middle', async () => {
  const abort = async (index: number) => {
    const client = await request(all);
    await client.anything();
    if (index % 2 === 0) client.reset();
    else client.socket.destroy();
  };
  for (let round = 0; round < 20; round += 1) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => abort(index)));
  }
  const answered = await Promise.all(
    Array.from({ length: 200 }, (_, index) => gateway.db({ SQL: `select ${index} as n` })),
  );
  answered.forEach((reply, index) => {
    assert.equal(reply.status, 200);
    assert.match(reply.text, new RegExp(`"ROWS":\\[\\[${index}\\]\\]`));
  });
  await eventually('nothing runs', async () => (await downloading()).length === 0);
  // The pool, the control connection, the readiness probe, and the one that counts.
  assert.ok((await connections()).length <= pool + 3);
  const metrics = (await gateway.get('/metrics')).text;
  assert.match(metrics, /^dbhttpd_worker_up.* 1$/m);
  assert.equal(gateway.workers()[0], worker);
});

test('leaves no warning of the runtime in the log, however often a reader was slow', () => {
  assert.doesNotMatch(gateway.log(), /warning/i);
});
