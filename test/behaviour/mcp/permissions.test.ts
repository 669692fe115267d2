// The permissions of an agent are those of its client: the tools that it sees, the sections that they read, and their limits. A client
// without a token learns which server issues one.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { createJwtKeys, jwtNames } from '../clients/support/jwt-keys.ts';
import { headersOf, messageOf, payloadOf } from './support/agent.ts';

const clients = createClientsFile({
  reader: { allow: 'mcp, sql' },
  bounded: { allow: 'mcp, sql', sections: 'second', max_rows: '3' },
  toolless: { allow: 'mcp' },
  backend: { allow: 'sql, named, batch' },
  person: { allow: 'mcp, sql', jwt: 'role: analyst' },
  anonymous: { allow: 'named' },
});
const keys = createJwtKeys();
let database: Database;
let other: Database;
let gateway: Gateway;

before(async () => {
  [database, other] = await Promise.all([startDatabase(), startDatabase()]);
  await other.query(
    `create table only_there (n int primary key);
     insert into only_there values (1), (2), (3), (4), (5)`,
  );
  gateway = await startGateway({
    database,
    section: 'first',
    settings: {
      workers: 1,
      mcp: 'on',
      url: 'https://db.example',
      clients: clients.path,
      jwt_keys: keys.path,
      ...jwtNames,
    },
    beside: { second: { database: other } },
  });
});
after(async () => {
  await gateway?.stop();
  await Promise.all([database?.stop(), other?.stop()]);
  clients.remove();
  keys.remove();
});

/** Sends a message of 2026-07-28 with a token. */
async function send(token: string | null, method: string, params: Record<string, unknown> = {}) {
  const headers = headersOf('2026-07-28', method, params);
  const reply = await gateway.post('/mcp', messageOf('2026-07-28', method, params), {
    headers: { ...headers, ...(token === null ? {} : bearing(token)) },
  });
  return { reply, payload: payloadOf(reply) };
}

type Tool = {
  readonly name: string;
  readonly inputSchema: { readonly properties: Record<string, { enum?: string[] }> };
};

async function toolsOf(name: string): Promise<readonly Tool[]> {
  const { payload } = await send(tokenOf(name), 'tools/list');
  return (payload.result as { tools: Tool[] }).tools;
}

async function call(name: string, args: Record<string, unknown>): Promise<string> {
  const params = { name: 'query', arguments: args };
  const { payload } = await send(tokenOf(name), 'tools/call', params);
  return (payload.result as { content: { text: string }[] }).content[0]?.text ?? '';
}

test('the tools for SQL are for clients that may use SQL', async () => {
  assert.deepEqual(
    (await toolsOf('reader')).map(({ name }) => name),
    ['describe', 'query'],
  );
  assert.deepEqual(await toolsOf('toolless'), []);
  const params = { name: 'query', arguments: { sql: 'select 1' } };
  const { payload } = await send(tokenOf('toolless'), 'tools/call', params);
  assert.match((payload.error as { message: string }).message, /Unknown tool/);
});

test('a client without the permission is refused, and learns which one it lacks', async () => {
  const { reply, payload } = await send(tokenOf('backend'), 'tools/list');
  assert.equal(reply.status, 403);
  const { data } = payload.error as { data: { code: string; missing: string } };
  assert.deepEqual([data.code, data.missing], ['FORBIDDEN', 'mcp']);
  assert.equal((await send(null, 'tools/list')).reply.status, 403);
});

test('the tools name the sections that the client may use, and take no others', async () => {
  const sectionsOf = async (name: string) =>
    (await toolsOf(name)).map(({ inputSchema }) => inputSchema.properties.section?.enum);
  assert.deepEqual(await sectionsOf('reader'), [
    ['first', 'second'],
    ['first', 'second'],
  ]);
  assert.deepEqual(await sectionsOf('bounded'), [['second'], ['second']]);
  const count = 'select count(*) as n from only_there';
  assert.match(await call('reader', { sql: count }), /ER_NO_SUCH_TABLE/);
  assert.match(await call('reader', { sql: count, section: 'second' }), /\[\["5"\]\]/);
  assert.match(await call('bounded', { sql: count }), /\[\["5"\]\]/);
  assert.match(await call('bounded', { sql: 'select 1', section: 'first' }), /"code":"FORBIDDEN"/);
  assert.match(await call('reader', { sql: 'select 1', section: 'x' }), /"code":"WRONG_SERVER"/);
});

test('limits of a client are limits of its results', async () => {
  const all = 'select n from only_there order by n';
  assert.match(
    await call('bounded', { sql: all, max_rows: 100 }),
    /"row_count":3,"truncated":true/,
  );
});

test('a 401 points to the document that names the issuer of tokens', async () => {
  const { reply } = await send('no-token', 'tools/list');
  assert.equal(reply.status, 401);
  const challenge = String(reply.headers['www-authenticate']);
  const [, url = ''] = /^Bearer resource_metadata="([^"]+)"$/.exec(challenge) ?? [];
  assert.equal(url, 'https://db.example/.well-known/oauth-protected-resource/mcp');
  const elsewhere = await gateway.get('/openapi.json', { headers: bearing('no-token') });
  assert.equal(elsewhere.headers['www-authenticate'], 'Bearer');
  for (const [path, resource] of [
    ['/.well-known/oauth-protected-resource/mcp', 'https://db.example/mcp'],
    ['/.well-known/oauth-protected-resource', 'https://db.example'],
  ] as const) {
    const document = await gateway.get(path);
    assert.equal(document.status, 200);
    const { resource: named, authorization_servers } = document.json<Record<string, unknown>>();
    assert.deepEqual([named, authorization_servers], [resource, [jwtNames.jwt_issuer]]);
  }
  assert.equal((await gateway.get('/.well-known/openid-configuration')).status, 404);
  const rebound = await gateway.get('/.well-known/oauth-protected-resource', {
    headers: { Host: 'evil.example' },
  });
  assert.equal(rebound.status, 421);
});

test('a JSON Web Token of the issuer is let in', async () => {
  const token = await keys.sign('ada', { role: 'analyst' });
  const { reply, payload } = await send(token, 'tools/list');
  assert.equal(reply.status, 200);
  assert.equal((payload.result as { tools: unknown[] }).tools.length, 2);
});
