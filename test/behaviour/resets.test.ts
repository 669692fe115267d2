// A reply that fails after it has begun ends with its connection, never looks whole, and harms nobody else: over TCP, over
// TLS, over a unix socket.
// Must not test which failures there are.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect as connectPlain, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { createAuthority } from '../support/certificates.ts';
import { createDaemon, type Settings } from '../support/daemon.ts';
import { type Database, startDatabase } from '../support/mariadb.ts';
import { type ProxiedDatabase, startProxiedDatabase } from '../support/proxied-database.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-resets-'));
const pair = createAuthority(directory).issue('server');
const socketPath = join(directory, 'http');
let database: Database;
let proxy: ProxiedDatabase;

before(async () => {
  database = await startDatabase();
  proxy = await startProxiedDatabase(database);
});
after(async () => {
  await proxy?.stop();
  await database?.stop();
  rmSync(directory, { recursive: true });
});

const sql = `with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
  select repeat('x', 1000) from c`;
const request = (statement: string) =>
  `GET /db?${encodeURIComponent(JSON.stringify({ SQL: statement }))} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;

/** Everything up to the end, and the error that the end was, if it was one. */
async function converse(socket: Socket, bytes: string): Promise<{ text: string; code?: string }> {
  const chunks: Buffer[] = [];
  let code: string | undefined;
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', (error: NodeJS.ErrnoException) => {
    code = error.code ?? error.message;
  });
  socket.setTimeout(10_000, () => socket.destroy(new Error('nothing came for 10 s')));
  socket.write(bytes);
  await new Promise((resolve) => socket.once('close', resolve));
  return { text: Buffer.concat(chunks).toString(), ...(code === undefined ? {} : { code }) };
}

const overTcp = (port: number) => connectPlain(port, '127.0.0.1');
const overTls = (port: number) => connectTls({ port, rejectUnauthorized: false });
const kinds: Readonly<
  Record<string, { settings: Settings; open: (port: number) => Socket; tells: boolean }>
> = {
  TCP: { settings: {}, open: overTcp, tells: true },
  TLS: {
    settings: { https_cert: pair.cert, https_key: pair.key },
    open: overTls,
    tells: true,
  },
  // There is no RST on a unix socket: only the missing last chunk tells, and JSON that is not whole.
  'a unix socket': {
    settings: { listen: socketPath },
    open: () => connectPlain(socketPath),
    tells: false,
  },
};

for (const [name, { settings, open, tells }] of Object.entries(kinds)) {
  test(`over ${name}`, async () => {
    const { host, port, user, password, name: schema } = proxy.target;
    const daemon = createDaemon({
      ...{ host, port: String(port), user, database: schema },
      ...(password === '' ? {} : { password: `"${password}"` }),
      ...settings,
    });
    try {
      assert.equal((await daemon.start()).status, 0, daemon.readLog());
      const workers = daemon.workers();
      const httpPort = Number(daemon.address().split(':').at(-1));
      const fault = { kind: 'cut-reply', afterBytes: 400_000 } as const;
      const rule = proxy.on((statement) => statement.includes('1000'), fault);
      const cut = await converse(open(httpPort), request(sql));
      rule.remove();
      assert.match(cut.text, /^HTTP\/1.1 200 /);
      assert.ok(!cut.text.endsWith('0\r\n\r\n'));
      if (tells) assert.equal(cut.code, 'ECONNRESET');
      const whole = await converse(open(httpPort), request("select 'well'"));
      assert.match(whole.text, /"well"/);
      assert.deepEqual(daemon.workers(), workers);
    } finally {
      await daemon.dispose();
    }
  });
}
