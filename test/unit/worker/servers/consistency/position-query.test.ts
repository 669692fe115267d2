// A server's answer bounds what a statement saw, for each kind of server, and shows whether it holds what is missing elsewhere.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Connection } from '../../../../../src/shared/mysql/connection.ts';
import { parseSets } from '../../../../../src/shared/servers/gtid-sets.ts';
import {
  type PositionAnswer,
  queryFor,
} from '../../../../../src/worker/servers/consistency/position-query.ts';
import {
  parseEvents,
  type SeenPosition,
} from '../../../../../src/worker/servers/consistency/token.ts';

const uuid = '3e11fa47-71ca-11e1-9e33-c80aa9429562';

function questionOf(flavour: 'mariadb' | 'mysql', isNode = false, isPrimary = true) {
  return queryFor({ flavour } as Connection, { isNode, isPrimary });
}

function answerOf(answer: PositionAnswer | null): PositionAnswer {
  assert.ok(answer !== null);
  return answer;
}

const events = (text: string): SeenPosition => ({
  kind: 'mariadb',
  events: parseEvents(text) ?? new Map(),
});
const gtids = (executed: string, owned = ''): SeenPosition => ({
  kind: 'mysql',
  executed: parseSets(executed) ?? new Map(),
  owned: parseSets(owned) ?? new Map(),
});

test('MariaDB: an event is there if its own server has come as far, not if another server has', () => {
  const { read } = questionOf('mariadb');
  const answer = answerOf(read(['0-2-30', '0-1-20,0-2-30', ''], null));
  assert.deepEqual(answer.position, events('0-2-30'));
  assert.equal(answer.has(events('0-1-20')), true);
  assert.equal(
    answer.has(events('0-1-21')),
    false,
    'server 2 has a higher number, which proves nothing',
  );
  assert.equal(answer.has(events('0-3-1')), false);
  assert.equal(answer.has(gtids(`${uuid}:1`)), null);
});

test('MariaDB: without a binary log nothing is bounded', () => {
  assert.equal(questionOf('mariadb').read(['', '', ''], null), null);
  assert.equal(questionOf('mariadb').read([null, null, null], null), null);
});

test('MariaDB: the session’s own write is known if it is a new one, and its domain the only one', () => {
  const { read } = questionOf('mariadb');
  const first = answerOf(read(['0-1-20', '0-1-20', '0-1-19'], null));
  assert.deepEqual(first.ownWrite, events('0-1-19'));
  assert.equal(answerOf(read(['0-1-21', '0-1-21', '0-1-19'], first)).ownWrite, null);
  assert.deepEqual(
    answerOf(read(['0-1-22', '0-1-22', '0-1-22'], first)).ownWrite,
    events('0-1-22'),
  );
  const several = answerOf(read(['0-1-22,7-1-5', '0-1-22,7-1-5', '0-1-22'], first));
  assert.equal(several.ownWrite, null, 'it may have seen what is in the other domain');
});

test('MariaDB: what a server has applied is there, although its log does not have it', () => {
  const { read } = questionOf('mariadb');
  for (const logsReplicated of ['0', '1']) {
    const answer = answerOf(read(['0-2-30', '0-2-30', '', '0-1-20', logsReplicated], null));
    assert.equal(answer.has(events('0-1-20')), true);
    assert.equal(answer.has(events('0-1-20,7-1-1')), logsReplicated === '0' ? null : false);
    assert.equal(answer.has(events('0-3-20')), logsReplicated === '0' ? null : false);
  }
});

test('MariaDB: a log without the events of other servers proves no loss, unless there were none', () => {
  const { read } = questionOf('mariadb');
  const promoted = answerOf(read(['0-2-30', '0-2-30', '', '0-1-20', '0'], null));
  assert.equal(promoted.has(events('0-1-21')), null);
  assert.equal(promoted.has(events('0-2-31')), null);
  const alone = answerOf(read(['0-2-30', '0-2-30', '', '', '0'], null));
  assert.equal(alone.has(events('0-2-31')), false);
});

test('MariaDB: a log without the events of other servers bounds only a primary that has written since, in each domain', () => {
  const bound = (log: string, applied: string, isPrimary: boolean, logsReplicated = '0') =>
    answerOf(
      questionOf('mariadb', false, isPrimary).read([log, log, log, applied, logsReplicated], null),
    );
  const promoted = bound('0-2-30', '0-1-29', true);
  assert.deepEqual(promoted.position, events('0-2-30'));
  assert.deepEqual(promoted.ownWrite, events('0-2-30'));
  for (const unknown of [
    bound('0-2-30', '0-1-29', false),
    bound('0-2-30', '0-1-30', true),
    bound('0-2-30', '0-1-31', true),
    bound('0-2-30', '0-1-29,7-1-1', true),
  ]) {
    assert.deepEqual([unknown.position, unknown.ownWrite], [null, null]);
  }
  assert.deepEqual(bound('0-2-30', '', false).position, events('0-2-30'));
  assert.deepEqual(bound('0-2-30', '0-2-30', false, '1').position, events('0-2-30'));
});

test('MySQL: the bound is executed and owned transactions; only the former can be proven lost', () => {
  const { read } = questionOf('mysql');
  const answer = answerOf(read([`${uuid}:7#3`, `${uuid}:1-5`], null));
  assert.deepEqual(answer.position, gtids(`${uuid}:1-5`, `${uuid}:7`));
  assert.equal(answer.has(gtids(`${uuid}:1-5`)), true);
  assert.equal(answer.has(gtids(`${uuid}:1-6`)), false);
  assert.equal(answer.has(gtids(`${uuid}:1-5`, `${uuid}:6`)), null, 'it may have been rolled back');
  assert.equal(answer.has(events('0-1-1')), null);
});

test('MySQL: without GTIDs nothing is bounded', () => {
  assert.equal(questionOf('mysql').read(['', ''], null), null);
});

test('Galera: the same cluster’s number counts, and a lower one proves nothing', () => {
  const { read } = questionOf('mariadb', true);
  const seen = (committed: bigint, cluster = uuid): SeenPosition => ({
    kind: 'galera',
    cluster,
    committed,
  });
  const answer = answerOf(read([uuid, '12'], null));
  assert.deepEqual(answer.position, seen(12n));
  assert.deepEqual(
    answerOf(questionOf('mysql', true).read([`${uuid}:12`], null)).position,
    seen(12n),
  );
  assert.equal(answer.has(seen(12n)), true);
  assert.equal(answer.has(seen(13n)), null);
  assert.equal(answer.has(seen(1n, uuid.replace('3', '4'))), null);
  assert.equal(read(['00000000-0000-0000-0000-000000000000', '-1'], null), null);
});
