// A reply that fails after it has begun ends with its connection, never looks whole, and harms no other: over TCP, over
// TLS, over a unix socket.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect } from 'node:tls';
import type { End } from '../../support/byte-source.ts';
import { createAuthority } from '../../support/certificates.ts';
import { createDaemon, type Settings } from '../../support/daemon.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { openRaw } from '../../support/http.ts';

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

/** The received text and the end of the connection; `unknown`: a TLS socket does not show its end. */
type Heard = { readonly text: string; readonly end: End | 'unknown' };

async function hearPlain(
  target: number | { readonly path: string },
  bytes: string,
): Promise<Heard> {
  const client = await openRaw(target);
  try {
    client.send(bytes);
    const end = await client.ended();
    return { text: client.received(), end };
  } finally {
    client.close();
  }
}

async function hearTls(port: number, bytes: string): Promise<Heard> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => {});
  socket.setTimeout(30_000, () => socket.destroy());
  socket.write(bytes);
  await new Promise((resolve) => socket.once('close', resolve));
  return { text: Buffer.concat(chunks).toString(), end: 'unknown' };
}

const kinds: Readonly<
  Record<
    string,
    {
      readonly settings: Settings;
      readonly hear: (port: number, bytes: string) => Promise<Heard>;
      readonly end: Heard['end'];
    }
  >
> = {
  TCP: { settings: {}, hear: hearPlain, end: 'reset' },
  TLS: {
    settings: { https_cert: pair.cert, https_key: pair.key },
    hear: hearTls,
    end: 'unknown',
  },
  // A unix socket has no RST: only the missing last chunk and incomplete JSON show it.
  'a unix socket': {
    settings: { listen: socketPath },
    hear: (_port, bytes) => hearPlain({ path: socketPath }, bytes),
    end: 'fin',
  },
};

for (const [name, { settings, hear, end }] of Object.entries(kinds)) {
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
      // A reset would take with it what the gateway has not read yet: the reply might not have begun.
      const fault = { kind: 'cut-reply', afterBytes: 400_000, how: 'fin' } as const;
      const rule = proxy.on((statement) => statement.includes('1000'), fault);
      const cut = await hear(httpPort, request(sql));
      rule.remove();
      assert.match(cut.text, /^HTTP\/1.1 200 /);
      assert.ok(!cut.text.endsWith('0\r\n\r\n'));
      assert.equal(cut.end, end);
      const whole = await hear(httpPort, request("select 'well'"));
      assert.match(whole.text, /"well"/);
      assert.deepEqual(daemon.workers(), workers, daemon.readLog());
    } finally {
      await daemon.dispose();
    }
  });
}
