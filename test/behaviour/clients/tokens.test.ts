// JSON Web Tokens over real connections: bodies wait for the verification, and forged tokens keep no known client waiting.
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, test } from 'node:test';
import { bearing, createClientsFile } from '../../support/clients-file.ts';
import { openRaw } from '../../support/http.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { formatRequest } from '../../support/worker-connections.ts';
import { createJwtKeys, jwtNames } from './support/jwt-keys.ts';

const file = createClientsFile({ people: { allow: 'sql', jwt: 'role: person' } });
const keys = createJwtKeys();
after(() => {
  file.remove();
  keys.remove();
});
const { gateway } = useGateway({
  workers: 1,
  pool: 4,
  clients: file.path,
  jwt_keys: keys.path,
  ...jwtNames,
});
const role = { role: 'person' };

/** A token with another signature than its own. */
async function forge(user: string): Promise<string> {
  const [header, claims] = (await keys.sign(user, role)).split('.');
  return `${header}.${claims}.${'A'.repeat(86)}`;
}

test('a body of any length is read once the token before it is verified', async () => {
  for (const length of [1, 1000, 60_000, 200_000, 900_000]) {
    const token = await keys.sign(`user-${length}`, role);
    const sql = `select length('${'x'.repeat(length)}')`;
    const reply = await gateway.post('/v1/query', { sql }, { headers: bearing(token) });
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(Number(reply.json<{ rows: unknown[][] }>().rows[0]?.[0]), length);
  }
});

test('requests with new tokens that are sent at once on one connection are answered in their order', async () => {
  const tokens = await Promise.all([1, 2, 3].map((user) => keys.sign(`order-${user}`, role)));
  const connection = await openRaw(gateway.port);
  try {
    for (const [at, token] of tokens.entries()) {
      const body = { sql: `select ${at}` };
      connection.send(formatRequest('POST', '/v1/query', body, bearing(token)));
    }
    for (const at of tokens.keys()) {
      const { status, body } = await connection.reply();
      assert.equal(status, 200);
      assert.equal(String(JSON.parse(body.toString()).rows[0][0]), String(at));
    }
  } finally {
    connection.socket.destroy();
  }
});

test('a client that waits for 100 (Continue) is not asked for its body before its token is verified', async () => {
  const body = JSON.stringify({ sql: 'select 1' });
  const head = (token: string) =>
    `POST /v1/query HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`;
  for (const [token, status, interim] of [
    [await keys.sign('patient', role), 200, 1],
    [await forge('patient'), 401, 0],
  ] as const) {
    const connection = await openRaw(gateway.port);
    connection.send(head(token));
    if (status === 200) {
      await connection.anything();
      connection.send(body);
    }
    const reply = await connection.reply();
    assert.deepEqual([reply.status, reply.interim], [status, interim]);
    connection.socket.destroy();
  }
});

test('a token that is longer than all headers may be is 431', async () => {
  const token = await keys.sign('long', { ...role, padding: 'x'.repeat(48 * 1024) });
  assert.ok(token.length >= 64 * 1024);
  const reply = await gateway.get('/openapi.json', { headers: bearing(token) });
  assert.equal(reply.status, 431);
});

test('a thousand forged tokens get 401 or 503, and a client whose token is known is served beside them', async () => {
  const good = bearing(await keys.sign('good', role));
  const ask = () => gateway.post('/v1/query', { sql: 'select 1' }, { headers: good });
  assert.equal((await ask()).status, 200);
  const forged = await Promise.all(Array.from({ length: 1000 }, (_, at) => forge(`forger-${at}`)));
  const agent = new Agent({ keepAlive: true, maxSockets: 200 });
  try {
    const rejected = Promise.all(
      forged.map((token) => gateway.get('/openapi.json', { headers: bearing(token), agent })),
    );
    const served = await Promise.all(Array.from({ length: 50 }, ask));
    for (const reply of served) assert.equal(reply.status, 200, reply.text);
    for (const reply of await rejected) {
      const { CODE } = reply.json<{ CODE: string }>();
      assert.equal(CODE, reply.status === 503 ? 'AUTH_BUSY' : 'UNAUTHORIZED', reply.text);
      assert.ok([401, 503].includes(reply.status));
      assert.equal(reply.headers['www-authenticate'], reply.status === 401 ? 'Bearer' : undefined);
    }
  } finally {
    agent.destroy();
  }
});

test('a token with a new key is accepted as soon as the file has the key, without SIGHUP', async () => {
  keys.rename('second');
  const token = await keys.sign('renamed', role, 'second');
  assert.equal((await gateway.get('/openapi.json', { headers: bearing(token) })).status, 200);
  const former = await keys.sign('former', role, 'first');
  assert.equal((await gateway.get('/openapi.json', { headers: bearing(former) })).status, 401);
});
