// The promise of HTTPS: TLS 1.3, and of TLS 1.2 only what keeps recorded traffic secret, whatever certificate is in use.
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type ConnectionOptions, connect } from 'node:tls';
import { clientTimeouts } from '../../../src/worker/http/limits.ts';
import { createAuthority, type PairFiles } from '../../support/certificates.ts';
import { daemonFor } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { type Handle, serveHttp } from '../../support/http-server.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-tls-'));
after(() => rmSync(directory, { recursive: true }));
const authority = createAuthority(directory);
const used = { cert: join(directory, 'used.pem'), key: join(directory, 'used.key') };
const install = ({ cert, key }: PairFiles) => {
  copyFileSync(cert, used.cert);
  copyFileSync(key, used.key);
};

type Agreed = { readonly version: string; readonly suite: string; readonly subject: string };

/** The agreement of client and server; null: none. */
function shake(port: number, offered: ConnectionOptions): Promise<Agreed | null> {
  return new Promise((resolve) => {
    // Level 0: the client accepts what this machine's OpenSSL would refuse by default.
    const ciphers = `${offered.ciphers ?? 'DEFAULT'}:@SECLEVEL=0`;
    const options = { host: '127.0.0.1', port, rejectUnauthorized: false, ...offered, ciphers };
    const socket = connect(options, () => {
      resolve({
        version: socket.getProtocol() ?? '',
        suite: socket.getCipher().name,
        subject: String(socket.getPeerCertificate().subject.CN),
      });
      socket.destroy();
    });
    socket.once('error', () => resolve(null));
  });
}

const only = (maxVersion: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3', ciphers: string) =>
  ({ minVersion: 'TLSv1', maxVersion, ciphers }) as const;

/** Suites that are refused, of TLS 1.2 and before. */
const refused = [
  ['static RSA', only('TLSv1.2', 'AES128-GCM-SHA256:AES256-GCM-SHA384')],
  ['static RSA with CBC', only('TLSv1.2', 'AES128-SHA:AES256-SHA256')],
  ['CBC', only('TLSv1.2', 'ECDHE-RSA-AES128-SHA:ECDHE-RSA-AES256-SHA384')],
  ['TLS 1.1', only('TLSv1.1', 'ECDHE-RSA-AES128-SHA')],
] as const;

test('a server offers TLS 1.3 and forward secrecy with authenticated encryption alone, with a new certificate too', async (t) => {
  install(authority.issue('before', { algorithm: 'rsa' }));
  const daemon = daemonFor(t, { https_cert: used.cert, https_key: used.key });
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  const port = Number(daemon.address().split(':').at(-1));
  for (const subject of ['before', 'after']) {
    if (subject === 'after') {
      install(authority.issue('after', { algorithm: 'rsa' }));
      process.kill(daemon.pid(), 'SIGHUP');
      await eventually(
        'the new certificate is in use',
        async () => (await shake(port, {}))?.subject === 'after',
      );
    }
    for (const [what, offered] of refused) {
      assert.equal(await shake(port, offered), null, `${what}, ${subject}`);
    }
    const newest = await shake(port, {});
    assert.equal(newest?.version, 'TLSv1.3');
    for (const suite of ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305']) {
      const agreed = await shake(port, only('TLSv1.2', `ECDHE-RSA-${suite}`));
      assert.deepEqual(agreed, { version: 'TLSv1.2', suite: `ECDHE-RSA-${suite}`, subject });
    }
  }
});

/** A server with TLS in this process, in which a handshake may last for an hour. */
async function serveTls(handle: Handle, connections = { served: 2_000, reserved: 16 }) {
  const pair = authority.issue('crowded', { algorithm: 'rsa' });
  return await serveHttp(handle, {
    tls: { cert: readFileSync(pair.cert, 'utf8'), key: readFileSync(pair.key, 'utf8') },
    connections,
    timeouts: { ...clientTimeouts, headersMs: 3_600_000, beyondLimitMs: 2_000 },
  });
}

test('a client that ends in its handshake gives its place back at once', async (t) => {
  const { http, port, end } = await serveTls((_request, reply) => reply.end());
  t.after(end);
  const helloBegins = Buffer.from([0x16, 3, 1, 2, 0, 1]);
  const ends: ((client: Socket) => unknown)[] = [
    (client) => client.write('GET / HTTP/1.1\r\n\r\n'),
    (client) => client.end(),
    (client) => client.resetAndDestroy(),
    (client) => client.end(helloBegins),
    (client) => client.write(helloBegins, () => client.resetAndDestroy()),
  ];
  for (const leave of ends) {
    const client = connectTcp(port, '127.0.0.1').on('error', () => {});
    await eventually('it is there', () => http.connections.open === 1);
    leave(client);
    await eventually('its place is free', () => http.connections.open === 0);
    client.destroy();
  }
});

test('TCP connections that are silent in the handshake count, and leave room for health checks', async (t) => {
  const [served, reserved] = [4, 2];
  const { http, port, end } = await serveTls(
    (_request, reply, isBeyondLimit) => reply.end(isBeyondLimit ? 'health' : 'anything'),
    { served, reserved },
  );
  const silent = Array.from({ length: served + reserved }, () => connectTcp(port, '127.0.0.1'));
  t.after(() => {
    for (const socket of silent) socket.destroy();
    end();
  });
  const ask = () =>
    new Promise<string>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
      let text = '';
      socket.on('data', (bytes) => {
        text += bytes;
      });
      socket.on('error', () => {}).once('close', () => resolve(text));
      socket.end('GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    });
  await eventually('those beyond the limit are refused', () => {
    return http.connections.refused === reserved;
  });
  await eventually('the others remain', () => http.connections.open === served);
  assert.match(await ask(), /health$/);
});

test('a client that is silent in its handshake does not hold up a stop', async (t) => {
  const { http, port, end } = await serveTls((_request, reply) => reply.end());
  t.after(end);
  const client = connectTcp(port, '127.0.0.1').on('error', () => {});
  t.after(() => void client.destroy());
  await eventually('it is there', () => http.connections.open === 1);
  await http.drain(10, false, () => {});
  await eventually('it is gone', () => http.connections.open === 0);
});
