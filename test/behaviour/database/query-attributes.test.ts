// Query attributes on the wire: requested only if a MySQL offers them. Then every statement has their head, and none becomes too long by
// it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { createAuthority } from '../../support/certificates.ts';
import {
  type FakeMysql,
  type Misbehaviour,
  startFakeMysql,
} from '../../support/database/fake-mysql.ts';
import { resultSet } from '../../support/database/mysql-answer.ts';
import { queryAttributes } from '../../support/database/mysql-wire.ts';
import { cellOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const traced = { headers: { traceparent } };
const comQuery = 0x03;
/** One attribute in one set, none of them NULL, with types: a text of this name, and its 55 bytes. */
const head = Buffer.concat([
  Buffer.from([comQuery, 1, 1, 0, 1, 0xfe, 0, 11]),
  Buffer.from('traceparent'),
  Buffer.from([55]),
  Buffer.from(traceparent),
]);
const emptyHead = Buffer.from([comQuery, 0, 1]);
/** A statement after the bytes that come before every statement. */
const beginsWith = (query: Buffer, own: Buffer) =>
  query.subarray(0, own.length).equals(own) && /^[a-z]/i.test(query.toString('utf8', own.length));

const limit = 4096;
const workspace = createWorkspace('attributes', () => undefined);

/** A section for each kind of server. The names are those of the sections. */
const kinds = {
  without: {},
  mariadb: { version: '11.9.1-MariaDB', withAttributes: true },
  old: { version: '5.5.5-10.11.6-MariaDB-1', withAttributes: true },
  plain: { withAttributes: true },
  encrypted: { withAttributes: true },
  small: {
    withAttributes: true,
    answer: (client, statement) => {
      if (statement !== 'SELECT @@max_allowed_packet') return false;
      client.send(resultSet([{}], [[String(limit)]]), 1);
      return true;
    },
  },
} as const satisfies Record<string, Misbehaviour>;
type Kind = keyof typeof kinds;

const servers = new Map<string, FakeMysql>();
let gateway: Gateway;

before(async () => {
  const files = createAuthority(workspace.path).issue('server');
  const tls = { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') };
  for (const [kind, behaviour] of Object.entries(kinds)) {
    const server = await startFakeMysql({ ...behaviour, ...(kind === 'encrypted' ? { tls } : {}) });
    servers.set(kind, server);
  }
  const settings = { workers: 1, pool: 4 };
  const beside = [...servers].slice(1).map(([kind, { target }]) => {
    const own = kind === 'encrypted' ? { tls: 'required' } : {};
    return [kind, { database: target, settings: { pool: 4, ...own } }] as const;
  });
  gateway = await startGateway({
    database: of('without').target,
    settings,
    section: 'without',
    beside: Object.fromEntries(beside),
  });
});
after(async () => {
  await gateway?.stop();
  for (const server of servers.values()) await server.stop();
  workspace.remove();
});

const of = (kind: Kind) => servers.get(kind) ?? assert.fail(kind);

/** A server of this kind, and the requests to it through the gateway. */
function use(kind: Kind) {
  const ask = (request: object, options = {}) =>
    gateway.dbPost({ SERVER: kind, ...request }, options);
  const askBatch = (statements: readonly object[]) =>
    gateway.post('/v1/batch', { section: kind, statements });
  return { server: of(kind), ask, askBatch };
}

/** The packets that requested attributes, and all COM_QUERYs. */
function seen({ clients }: FakeMysql) {
  const asked = clients.flatMap((client) =>
    client.asked.map((flags) => (flags & queryAttributes) !== 0),
  );
  const all = clients.flatMap(({ commands }) => commands);
  return { asked, queries: all.filter((command) => command[0] === comQuery) };
}

/** The payload with which these words were sent. */
function sent(from: FakeMysql, words: string): Buffer {
  const found = seen(from).queries.filter((payload) => payload.includes(words));
  assert.equal(found.length, 1, words);
  return found[0] as Buffer;
}

for (const [who, kind] of [
  ['a MySQL, or what stands before one, that does not offer them', 'without'],
  ['a MariaDB, whatever its bit says', 'mariadb'],
  ['a MariaDB that calls itself 5.5.5', 'old'],
] as const) {
  test(`${who}, gets no request for them, and sees statements as ever`, async () => {
    const { server, ask } = use(kind);
    await ask({ SQL: 'select 21' }, traced);
    assert.equal(sent(server, 'select 21').toString(), '\x03select 21');
    const { asked, queries } = seen(server);
    assert.ok(asked.length > 0 && !asked.includes(true));
    for (const query of queries) assert.ok(beginsWith(query, Buffer.from([comQuery])));
  });
}

for (const [tls, kind] of [
  ['', 'plain'],
  ['over TLS, ', 'encrypted'],
] as const) {
  test(`${tls}a MySQL that offers them gets the request, and a trace if there is one`, async () => {
    const { server, ask } = use(kind);
    await ask({ SQL: 'select 22' }, traced);
    await ask({ SQL: 'select 23' });
    assert.deepEqual(sent(server, 'select 22'), Buffer.concat([head, Buffer.from('select 22')]));
    assert.deepEqual(
      sent(server, 'select 23'),
      Buffer.concat([emptyHead, Buffer.from('select 23')]),
    );
    // The gateway's own, on all of its connections, and those of other requests.
    const others = () => seen(server).queries.filter((query) => !query.includes('select 22'));
    await eventually('it has asked for itself', () => others().length > 5);
    for (const query of others()) assert.ok(beginsWith(query, emptyHead));
    const { asked } = seen(server);
    assert.ok(asked.length > 0 && !asked.includes(false));
  });
}

test('the limit of a command counts the bytes before the statement, and no trace makes a command too long', async () => {
  const { server, ask, askBatch } = use('small');
  const statement = (length: number) =>
    `select '${length}${'x'.repeat(length - 9 - String(length).length)}'`;
  const longest = limit - 1 - emptyHead.length;
  for (const length of [longest, limit - head.length]) {
    assert.equal((await ask({ SQL: statement(length) }, traced)).status, 200);
    const whole = Buffer.concat([emptyHead, Buffer.from(statement(length))]);
    assert.deepEqual(sent(server, `select '${length}`), whole);
  }
  const fitting = statement(limit - 1 - head.length);
  assert.equal((await ask({ SQL: fitting }, traced)).status, 200);
  assert.deepEqual(sent(server, fitting), Buffer.concat([head, Buffer.from(fitting)]));

  const tooLong = await ask({ SQL: statement(longest + 1) });
  assert.equal(tooLong.json<{ MYSQL_ERRNO: number }>().MYSQL_ERRNO, 1153);
  const bound = (length: number) =>
    ask({ SQL: `${statement(length - ', ?'.length)}, ?`, PARAMS: [1] }, traced);
  assert.deepEqual([(await bound(longest)).status, (await bound(longest + 1)).status], [200, 413]);
  // A statement more takes ten bytes: one of these lengths fills the first text of a batch to the last byte.
  const lengths = Array.from({ length: 10 }, (_, n) => 100 + n);
  for (const length of lengths) {
    const one = { sql: 'select 1' };
    const statements = [{ sql: statement(length) }, ...Array.from({ length: 450 }, () => one)];
    await askBatch(statements);
    assert.ok(sent(server, `select '${length}x`).includes('START TRANSACTION'));
  }
  const { queries } = seen(server);
  assert.ok(queries.every((query) => query.length < limit));
  assert.equal(Number(cellOf(await ask({ SQL: 'select 1' }))), 1);
});
