// The judgement of the long runs about an ending: it breaks a promise unless a fault explains it. Runs nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ending } from '../../../../scripts/endurance/client.ts';
import {
  type Excuses,
  judgeEnding,
  requestPromises,
} from '../../../../scripts/endurance/judgement.ts';
import { insert, leave, look, outlast, point } from '../../../../scripts/endurance/questions.ts';

const calm: Excuses = { worker: false, database: false };
const workerDied: Excuses = { worker: true, database: false };
const databaseAway: Excuses = { worker: false, database: true };

function reply(status: number, document: object | string): Ending {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  return { kind: 'reply', status, body: Buffer.from(text) };
}

const cut: Ending = { kind: 'cut', detail: 'reset', received: 0 };
const rows = (...all: unknown[][]) => reply(200, { RESULT: { ROWS: all } });
const broken = (...[question, ending, excuses]: Parameters<typeof judgeEnding>) =>
  judgeEnding(question, ending, excuses).breach?.promise ?? null;

test('a right answer keeps all promises', () => {
  assert.equal(broken(point(205), rows([205, 35]), calm), null);
  assert.equal(broken(look(3, 'world'), rows([3, null, 'world', 1]), calm), null);
  const written = judgeEnding(insert(4), reply(200, { RESULT: { AFFECTED_ROWS: 1 } }), calm);
  assert.deepEqual([written.reported, written.breach], ['applied', null]);
});

test("another question's answer, and a changed session, are wrong", () => {
  assert.equal(broken(point(205), rows([206, 42]), workerDied), requestPromises.value);
  assert.equal(broken(look(3, 'world'), rows([3, 7, 'world', 1]), calm), requestPromises.value);
});

test('a refused connection is never excused', () => {
  const refused: Ending = { kind: 'refused', detail: 'ECONNREFUSED' };
  for (const excuses of [calm, workerDied, databaseAway]) {
    assert.equal(broken(point(1), refused, excuses), requestPromises.connect);
  }
});

test('half a document is none, whatever happened', () => {
  assert.equal(broken(point(1), reply(200, '{"RESULT":'), databaseAway), requestPromises.document);
});

test('a cut comes from a dead worker, or from a stream whose database went away', () => {
  assert.equal(broken(point(1), cut, calm), requestPromises.status);
  assert.equal(broken(point(1), cut, workerDied), null);
  assert.equal(broken(point(1), cut, databaseAway), requestPromises.status);
  assert.equal(broken(point(1), { ...cut, received: 9 }, databaseAway), null);
});

test('errors of the database are excused while it is away, and their report about a write is kept', () => {
  const lost = reply(502, { ERROR: 'lost', OUTCOME: 'unknown' });
  const away = reply(503, { ERROR: 'away', OUTCOME: 'not_executed' });
  assert.equal(broken(insert(1), lost, calm), requestPromises.status);
  assert.equal(broken(insert(1), away, workerDied), requestPromises.status);
  assert.equal(judgeEnding(insert(1), lost, databaseAway).reported, 'unknown');
  assert.equal(judgeEnding(insert(1), away, databaseAway).reported, 'not_executed');
  assert.equal(judgeEnding(insert(1), lost, databaseAway).breach, null);
  const killed = reply(200, { MYSQL_ERRNO: 1053, MYSQL_ERROR: 'shutdown' });
  assert.equal(broken(leave(1), killed, databaseAway), null);
  assert.equal(broken(leave(1), killed, calm), requestPromises.status);
});

test('a statement that outlasts its deadline is answered by 504, and by nothing else', () => {
  const late = reply(504, { ERROR: 'deadline', OUTCOME: 'failed' });
  assert.equal(broken(outlast(1), late, calm), null);
  assert.equal(broken(point(1), late, calm), requestPromises.status);
  assert.equal(broken(outlast(1), rows([1, 0]), calm), requestPromises.value);
});
