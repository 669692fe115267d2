// A client's token holds all that it has seen, from reply to reply, and does not grow with the replies.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatSets } from '../../../../../src/shared/servers/gtid-sets.ts';
import { Consistency } from '../../../../../src/worker/servers/consistency/consistency.ts';
import {
  encodeToken,
  parseEvents,
  type Token,
} from '../../../../../src/worker/servers/consistency/token.ts';
import type { Session } from '../../../../../src/worker/servers/pool/session.ts';
import {
  createScriptedConnection,
  createScriptedSession,
} from '../../../support/scripted-connection.ts';

const uuid = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
const replies = 1_000;

function bearerOf(name: string) {
  const part = { name, run: `${name}/1`, isPrimary: true, isNode: false, position: null };
  const session = { connection: { flavour: 'mysql' } } as Session;
  const consistency = new Consistency(() => part);
  return (owned: string, executed: string, before: Token | null) =>
    consistency.seenOn(session, [owned, executed], before, false);
}

test('MySQL: a token does not grow with replies that each saw another transaction being committed', () => {
  const see = bearerOf('one');
  let token: Token | null = null;
  for (let reply = 1; reply <= replies; reply += 1) {
    // Every second one: ranges that do not touch.
    const seen = see(`${uuid}:${2 * reply}#7`, `${uuid}:1-${2 * reply - 1}`, token);
    assert.equal(seen.isVerified, true);
    token = seen.token;
  }
  assert.ok(token?.position.kind === 'mysql');
  assert.equal(formatSets(token.position.executed), `${uuid}:1-${2 * replies - 1}`);
  assert.equal(formatSets(token.position.owned), `${uuid}:${2 * replies}`);
  assert.notEqual(encodeToken(token, Buffer.alloc(32)), null, 'it fits into a header');
});

test('MySQL: a transaction that is still being committed remains in the token, whatever else has been executed', () => {
  const see = bearerOf('one');
  const first = see(`${uuid}:6#7:7#8`, `${uuid}:1-5`, null);
  const second = see(`${uuid}:9#7`, `${uuid}:1-5:7-8`, first.token);
  assert.ok(second.token?.position.kind === 'mysql');
  assert.equal(formatSets(second.token.position.owned), `${uuid}:6:9`);
  assert.equal(formatSets(second.token.position.executed), `${uuid}:1-5:7-8`);
});

/** A MariaDB server that holds these events, in the run of this number. */
function createServer(state: string, run = 1, isPrimary = true) {
  const server = { state, run, isPrimary };
  const connection = createScriptedConnection(() => ({ rows: [[server.state, server.state, '']] }));
  const session = createScriptedSession(connection);
  const consistency = new Consistency(() => ({
    name: 'one',
    run: `one/${server.run}`,
    isPrimary: server.isPrimary,
    isNode: false,
    position: null,
  }));
  return { server, connection, session, consistency };
}

const tokenOf = (state: string): Token => ({
  server: 'one',
  position: { kind: 'mariadb', events: parseEvents(state) ?? new Map() },
});

test('a server that comes back without its last transactions is queried before a write with their token, which is refused as lost', async () => {
  const { server, session, consistency } = createServer('0-1-10');
  const token = tokenOf('0-1-10');
  assert.equal(await consistency.waitForPosition(session, token), 'ready');
  assert.equal(consistency.mustWait(token, false), false, 'what it has in this run is known');
  server.run = 2;
  server.state = '0-1-9';
  assert.equal(consistency.mustWait(token, false), true);
  assert.equal(await consistency.waitForPosition(session, token), 'lost');
  assert.equal(await consistency.waitForPosition(session, tokenOf('0-1-9')), 'ready');
});

test('a server that comes back without its last transactions as a replica has lost them too', async () => {
  const { session, consistency } = createServer('0-1-9', 2, false);
  assert.equal(await consistency.waitForPosition(session, tokenOf('0-1-10')), 'lost');
});

test('a read with a token of transactions that its own server has lost is reported lost, not behind', async () => {
  const { connection, session, consistency } = createServer('0-1-9', 2);
  const row = ['0-1-9', '0-1-9', ''];
  const seen = consistency.seenOn(session, row, tokenOf('0-1-10'), false);
  assert.deepEqual(seen, { token: null, missing: 'lost', isVerified: false });
  const beside = await consistency.seenNow(connection, tokenOf('0-1-10'));
  assert.deepEqual(beside, { token: null, missing: 'lost', isVerified: false });
});

test('a write is an upper bound of what it saw only if the write before on its session is known', () => {
  const { session, consistency } = createServer('0-1-10');
  const after = (last: string) =>
    consistency.seenOn(session, ['0-1-10', '0-1-10', last], null, true).token?.position;
  // It may be a write of an earlier user of the session.
  assert.deepEqual(after('0-1-7'), tokenOf('0-1-10').position);
  assert.deepEqual(after('0-1-8'), tokenOf('0-1-8').position);
  assert.deepEqual(after('0-1-8'), tokenOf('0-1-10').position);
  consistency.forget(session);
  assert.deepEqual(after('0-1-9'), tokenOf('0-1-10').position);
});

test('a replica that was waited for once is not waited for again, unless it was restarted or the token is of other events', async () => {
  const asked: string[] = [];
  const server = { run: 1 };
  const connection = createScriptedConnection((sql) => {
    asked.push(sql);
    return sql.includes('WAIT') ? { rows: [['0']] } : { rows: [['0-1-10', '0-1-10', '']] };
  });
  const session = createScriptedSession(connection);
  const part = { name: 'two', isPrimary: false, isNode: false, position: null };
  const consistency = new Consistency(() => ({ ...part, run: `two/${server.run}` }));
  const row = ['0-1-10', '0-1-10', ''];
  consistency.seenOn(session, row, null, false);
  const token = tokenOf('0-1-9');
  assert.equal(consistency.mustWait(token, true), true);
  assert.equal(await consistency.waitForPosition(session, token), 'ready');
  assert.deepEqual(asked, ["SELECT MASTER_GTID_WAIT('0-1-9', 1)"]);
  assert.equal(consistency.mustWait(token, true), false);
  assert.equal(consistency.mustWait(tokenOf('0-1-8'), true), false);
  assert.equal(consistency.mustWait(tokenOf('0-1-10'), true), true, 'in its log, not yet shown');
  assert.equal(consistency.mustWait(tokenOf('0-2-8'), true), true, 'of another server');
  server.run = 2;
  assert.equal(consistency.mustWait(token, true), true);
});

const cluster = uuid;
const seenOnNode = (committed: bigint, of = cluster): Token => ({
  server: 'one',
  position: { kind: 'galera', cluster: of, committed },
});

/** A node of MariaDB that has come as far as these numbers, one for each call; the last one remains. */
function createNode(numbers: readonly number[], synced: 'synced' | number = 'synced') {
  const asked: string[] = [];
  const left = [...numbers];
  const connection = createScriptedConnection((sql) => {
    asked.push(sql);
    if (sql.includes('wsrep_sync_wait')) {
      return typeof synced === 'number' ? { errno: synced } : { rows: [['0']] };
    }
    const number = left.length > 1 ? left.shift() : left[0];
    return { rows: [[cluster, String(number)]] };
  });
  const part = { name: 'two', run: 'two/1', isPrimary: false, isNode: true, position: null };
  const consistency = new Consistency(() => part);
  return { asked, session: createScriptedSession(connection), consistency };
}

test('Galera: a reply has a token of the cluster and of its last number', () => {
  const { session, consistency } = createNode([7]);
  const seen = consistency.seenOn(session, [cluster, '7'], null, true);
  assert.deepEqual(seen, {
    token: { server: 'two', position: { kind: 'galera', cluster, committed: 7n } },
    missing: 'nothing',
    isVerified: true,
  });
});

test('Galera: a read at another node waits for the number, and then for all that the cluster has', async () => {
  const { asked, session, consistency } = createNode([5, 6, 7]);
  assert.equal(consistency.mustWait(seenOnNode(7n), true), true);
  assert.equal(await consistency.waitForPosition(session, seenOnNode(7n)), 'ready');
  assert.equal(asked.length, 4);
  assert.match(asked[3] ?? '', /^SET STATEMENT wsrep_sync_wait = 1 FOR SELECT/);
  assert.equal(consistency.mustWait(seenOnNode(7n), true), true, 'the number alone proves little');
});

test('Galera: a node that does not get there is behind, and one of another cluster proves nothing', async () => {
  const late = createNode([6]);
  assert.equal(await late.consistency.waitForPosition(late.session, seenOnNode(7n)), 'behind');
  const gone = createNode([7], 1047);
  assert.equal(await gone.consistency.waitForPosition(gone.session, seenOnNode(7n)), 'behind');
  const other = createNode([9]);
  const foreign = seenOnNode(7n, uuid.replace('3', '4'));
  assert.equal(await other.consistency.waitForPosition(other.session, foreign), 'unverified');
  const own = { ...foreign, server: 'two' };
  assert.equal(await other.consistency.waitForPosition(other.session, own), 'unverified');
  const same = { ...seenOnNode(7n), server: 'two' };
  assert.equal(await other.consistency.waitForPosition(other.session, same), 'ready');
});
