// The order of requests that name the same transaction.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ArrivalOrder, findNamed } from '../../../../src/worker/request/arrival-order.ts';

const named = (...tokens: string[]) => new Set(tokens);

test('a request waits for those before it that name its transaction, and for no others', async () => {
  const order = new ArrivalOrder();
  assert.deepEqual(order.before('a', null), []);
  const first = order.enter(named('a'));
  const other = order.enter(named('b'));
  const second = order.enter(named('a', 'c'));
  assert.deepEqual(order.before('a', null), [first, second]);
  assert.deepEqual(order.before('a', second), [first]);
  assert.deepEqual(order.before('a', first), []);
  assert.deepEqual(order.before('b', null), [other]);
  assert.deepEqual(order.before('', null), []);
  first.leave();
  first.leave();
  await first.left;
  assert.deepEqual(order.before('a', null), [second]);
});

test('the transaction of a long body is found without parsing the body', () => {
  const find = (text: string) => [...findNamed(Buffer.from(text))];
  assert.deepEqual(find('{"sql":"x","transaction":"AbC-_9"}'), ['AbC-_9']);
  assert.deepEqual(find('{ "transaction" :\n "a" , "sql":"b"}'), ['a']);
  assert.deepEqual(find(JSON.stringify({ sql: 'select "transaction":"no"', transaction: 'yes' })), [
    'yes',
  ]);
  assert.deepEqual(find('{"transaction":null}'), []);
  assert.deepEqual(find('{"transaction'), []);
  assert.equal(find(`{${'"transaction":"a",'.repeat(1000)}`).length, 1);
});
