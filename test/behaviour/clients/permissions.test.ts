// Every path with every permission: a client that lacks the permission gets 403, and any other client does not.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Permission, permissions } from '../../../src/shared/clients/client.ts';
import { rulesOf } from '../../../src/worker/request/compat.ts';
import { createRoutes } from '../../../src/worker/routes.ts';
import type { Options, Reply } from '../../support/ask.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { inTime } from '../../support/reports.ts';
import { useGateway } from '../../support/use-gateway.ts';

/** A path as the documentation describes it. Null: any client may use it. */
type Door = {
  readonly path: string;
  readonly methods: readonly string[];
  readonly needs: Permission | null;
  readonly body?: object;
  /** A status other than 200 that an admitted client gets. */
  readonly status?: number;
};

const sql = 'select 1';
const driver = '/psdb.v1alpha1.Database';
/** The table of the documentation. */
const doors: readonly Door[] = [
  { path: '/db', methods: ['GET', 'POST'], needs: 'sql', body: { SQL: sql } },
  { path: '/db/', methods: ['GET', 'POST'], needs: 'sql', body: { SQL: sql } },
  { path: '/v1/query', methods: ['POST', 'QUERY'], needs: 'sql', body: { sql } },
  { path: '/v1/batch', methods: ['POST'], needs: 'batch', body: { statements: [{ sql }] } },
  { path: '/v1/transaction', methods: ['POST'], needs: 'transaction', body: {}, status: 201 },
  { path: '/v1/named', methods: ['GET', 'HEAD'], needs: 'named' },
  {
    path: '/v1/named/none',
    methods: ['GET', 'HEAD', 'POST'],
    needs: 'named',
    body: {},
    status: 404,
  },
  { path: '/v1/tables', methods: ['GET'], needs: 'sql' },
  { path: '/v1/tables/none', methods: ['GET'], needs: 'sql', status: 404 },
  ...['commit', 'rollback'].map((verb): Door => {
    const status = verb === 'commit' ? 409 : 200;
    const body = { transaction: 'AQAA' };
    return {
      path: `/v1/transaction/${verb}`,
      methods: ['POST'],
      needs: 'transaction',
      body,
      status,
    };
  }),
  { path: `${driver}/Execute`, methods: ['POST'], needs: 'drivers', body: { query: sql } },
  { path: `${driver}/CreateSession`, methods: ['POST'], needs: 'drivers', body: {} },
  // The protocol wants to know what the client accepts.
  { path: '/mcp', methods: ['POST'], needs: 'mcp', body: { jsonrpc: '2.0' }, status: 400 },
  { path: '/metrics', methods: ['GET', 'HEAD'], needs: 'metrics' },
  { path: '/v1/stats', methods: ['GET', 'HEAD'], needs: 'observe' },
  { path: '/v1/statements', methods: ['GET', 'HEAD'], needs: 'observe' },
  { path: '/v1/requests', methods: ['GET', 'HEAD'], needs: null },
  { path: '/openapi.json', methods: ['GET', 'HEAD'], needs: null },
  // The number of a request that another client may have.
  { path: '/v1/requests/0-1-1', methods: ['DELETE'], needs: 'kill', status: 404 },
  { path: '/v1/requests/an-id-of-mine', methods: ['DELETE'], needs: null, status: 404 },
];
const open = ['/livez', '/readyz', '/console'];
const allMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'TRACE'];

/** Clients with one permission alone (drivers need sql, too), with all but one, and with all. */
const allowed: Readonly<Record<string, readonly Permission[]>> = {
  ...Object.fromEntries(
    permissions.map((one) => [`only-${one}`, one === 'drivers' ? ['sql', one] : [one]]),
  ),
  ...Object.fromEntries(
    permissions.map((one) => [
      `without-${one}`,
      permissions.filter((other) => other !== one && !(one === 'sql' && other === 'drivers')),
    ]),
  ),
  everything: permissions,
};

const file = createClientsFile({
  ...Object.fromEntries(
    Object.entries(allowed).map(([name, allow]) => [name, { allow: allow.join(', ') }]),
  ),
  anonymous: { allow: 'named' },
});
after(() => file.remove());
const { gateway } = useGateway(
  { workers: 1, token: 'own-token', drivers: 'planetscale', mcp: 'on', clients: file.path },
  { ready: async () => undefined },
);

/** Sends what the path takes, with a token in the way of the path. */
function ask(door: Door, method: string, token: string | null): Promise<Reply> {
  const { path, body } = door;
  const isUrl = path.startsWith('/db') && method === 'GET';
  const isDriver = path.startsWith(driver);
  const Authorization = isDriver
    ? `Basic ${Buffer.from(`app:${token}`).toString('base64')}`
    : `Bearer ${token}`;
  const options: Options = {
    method,
    headers: {
      ...(token !== null && { Authorization }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && !isUrl && { body: JSON.stringify(body) }),
  };
  const query = isUrl ? `?${encodeURIComponent(JSON.stringify(body))}` : '';
  return inTime(`${method} ${path}`, () => gateway.request(`${path}${query}`, options));
}

/** The permission that a reply says is missing; null: it is no refusal. */
function missingIn(reply: Reply, method: string): string | null {
  if (reply.status !== 403) return null;
  if (method === 'HEAD') return 'something';
  const { code, missing, CODE, MISSING, error } = reply.json<{
    code?: string;
    missing?: string;
    CODE?: string;
    MISSING?: string;
    error?: { code: string; missing: string; data?: { code: string; missing: string } };
  }>();
  const inner = error?.data ?? error;
  assert.equal(code ?? CODE ?? inner?.code, 'FORBIDDEN', reply.text);
  return missing ?? MISSING ?? inner?.missing ?? null;
}

/** The path as the table of routes has it. */
function familyOf(path: string): string {
  return path.replace(/^\/v1\/(requests|named|tables)\/.*/, '/v1/$1/*');
}

test('the table of the documentation has every path that is served', () => {
  const never = () => assert.fail('nothing is asked');
  const endpoint = { kind: 'sql', check: () => null, decide: never } as const;
  const routes = createRoutes(rulesOf.off, {
    ...{ db: endpoint, query: endpoint, batch: endpoint, named: endpoint, tables: endpoint },
    statements: { list: never } as never,
    ...{ begin: endpoint, commit: endpoint, rollback: endpoint },
    mcp: { endpoint, resource: null },
    drivers: { execute: endpoint, createSession: endpoint },
    askReady: never,
    supervisor: { ask: never } as never,
    consoleFiles: null,
  });
  const known = new Set(doors.map(({ path }) => familyOf(path)));
  for (const { path, access, needs, methods } of routes) {
    if (needs === 'nothing') {
      assert.ok(['open', 'page', 'file'].includes(access), path);
      continue;
    }
    assert.ok(['guarded', 'driver'].includes(access), path);
    assert.ok(known.delete(path), `${path} is not in the table`);
    const [first] = doors.filter((door) => familyOf(door.path) === path);
    assert.deepEqual([...methods], [...(first?.methods ?? [])], path);
  }
  assert.deepEqual([...known], []);
});

for (const [name, allow] of Object.entries(allowed)) {
  test(`a client with ${allow.join(', ')} gets 403 exactly where a permission is missing`, async () => {
    for (const door of doors) {
      const { needs, methods, status = 200, path } = door;
      const isBatch = needs === 'batch' && allow.includes('batch');
      const wanted = isBatch ? 'sql' : needs;
      const mayPass = wanted === null || allow.includes(wanted);
      for (const method of methods) {
        const reply = await ask(door, method, tokenOf(name));
        const shown = `${method} ${path}: ${reply.status} ${reply.text}`;
        if (mayPass) assert.equal(reply.status, status, shown);
        else if (method === 'HEAD') assert.equal(reply.status, 403, shown);
        else assert.equal(missingIn(reply, method), wanted, shown);
        if (reply.status === 201) await end(reply, tokenOf(name));
      }
    }
  });
}

/** Gives the connection of a transaction back. */
async function end(begun: Reply, token: string): Promise<void> {
  const body = begun.json<{ transaction: string }>();
  const { transaction } = body;
  await gateway.post('/v1/transaction/rollback', { transaction }, { headers: bearing(token) });
}

test('401 comes before the path and the method, and both come before 403', async () => {
  for (const door of [...doors, { path: '/nothing', methods: [], needs: null }]) {
    for (const method of allMethods) {
      const unknown = await ask(door, method, 'no-token');
      assert.equal(unknown.status, 401, `${method} ${door.path}`);
      const taken = (door.methods as readonly string[]).includes(method);
      if (taken) continue;
      const reply = await ask(door, method, tokenOf('only-named'));
      assert.equal(reply.status, door.path === '/nothing' ? 404 : 405, `${method} ${door.path}`);
    }
  }
});

test('the token of the section may do everything', async () => {
  for (const door of doors) {
    for (const method of door.methods) {
      const reply = await ask(door, method, 'own-token');
      assert.equal(reply.status, door.status ?? 200, `${method} ${door.path} ${reply.text}`);
      if (reply.status === 201) await end(reply, 'own-token');
    }
  }
});

test('a request without credentials is anonymous, and none with wrong ones is', async () => {
  for (const door of doors) {
    if (door.path.startsWith(driver)) continue;
    for (const method of door.methods) {
      const reply = await ask(door, method, null);
      const isOwn = door.path.startsWith('/v1/requests/');
      const isAny = door.needs === null && !isOwn;
      const isNamed = door.needs === 'named';
      const taken = isNamed ? (door.status ?? 200) : 200;
      assert.equal(reply.status, isAny || isNamed ? taken : 403, `${method} ${door.path}`);
      if (isOwn) assert.equal(missingIn(reply, method), 'kill');
    }
  }
  for (const path of open) assert.equal((await gateway.get(path)).status, 200, path);
  const texts = new Set<string>();
  for (const Authorization of [
    '',
    'Bearer',
    'Bearer x',
    'Basic eDp5',
    'Digest x',
    'Bearer a.b.c',
  ]) {
    const reply = await gateway.get('/openapi.json', { headers: { Authorization } });
    assert.equal(reply.status, 401, Authorization);
    texts.add(reply.text);
  }
  assert.equal(texts.size, 1);
});

test('several Authorization headers are no credentials, also if one of them is good', async () => {
  const { request } = await import('node:http');
  const good = `Bearer ${tokenOf('everything')}`;
  const status = await new Promise<number>((resolve, reject) => {
    const asked = request(`${gateway.url}/openapi.json`, { agent: false }, (reply) => {
      reply.resume();
      resolve(reply.statusCode ?? 0);
    });
    asked.setHeader('Authorization', [good, good]);
    asked.once('error', reject);
    asked.end();
  });
  assert.equal(status, 401);
});

test('a KILL needs the permission kill, on every way to the server', async () => {
  const kill = 'kill query 1';
  const headers = bearing(tokenOf('without-kill'));
  const ways: readonly (() => Promise<Reply>)[] = [
    () => gateway.db({ SQL: kill }, { headers }),
    () => gateway.dbPost({ SQL: `select 1; ${kill}` }, { headers }),
    () => gateway.dbPost({ SQL: `/*! ${kill} */` }, { headers }),
    () => gateway.post('/v1/query', { sql: kill }, { headers }),
    () => gateway.post('/v1/query', { sql: 'kill query ?', params: [1] }, { headers }),
    () => gateway.post('/v1/query', { sql: `execute immediate '${kill}'` }, { headers }),
    () => gateway.post('/v1/batch', { statements: [{ sql: kill }] }, { headers }),
    () =>
      ask(
        { path: `${driver}/Execute`, methods: [], needs: null, body: { query: kill } },
        'POST',
        tokenOf('without-kill'),
      ),
  ];
  for (const way of ways) assert.equal(missingIn(await way(), 'POST'), 'kill');
  const word = await gateway.post('/v1/query', { sql: "select 'kill query 1'" }, { headers });
  assert.equal(word.status, 200);
  const by = bearing(tokenOf('everything'));
  const reply = await gateway.post('/v1/query', { sql: 'kill query 999999999' }, { headers: by });
  assert.equal(reply.json<{ code: string }>().code, 'ER_NO_SUCH_THREAD', reply.text);
});
