// A token leads to the worker that it names, and to no later one with the same process id.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CommitKeeper,
  OpenTransactions,
} from '../../../../../src/worker/execution/transactions/open-transactions.ts';
import { encodeTransactionToken } from '../../../../../src/worker/execution/transactions/transaction-token.ts';

const owner = { pid: 4711, incarnation: '00112233aabbccdd', key: Buffer.alloc(32, 1) };
const bearer = { section: 'shop', owner: 'secret' };
const keeper: CommitKeeper = {
  begun: async () => {},
  settled: async () => {},
  left: async () => {},
  doubted: async () => {},
  endingOf: async () => 'unknown',
};

test('a token of another life of the same process id leads elsewhere: its number means nothing here', () => {
  const held = new OpenTransactions(owner, keeper);
  const kindOf = (name: { pid: number; incarnation: string }) => {
    const token = encodeTransactionToken({ ...name, serial: 1 }, bearer, owner.key);
    return held.find(token, bearer).kind;
  };
  assert.equal(kindOf(owner), 'over');
  assert.equal(kindOf({ ...owner, incarnation: '00112233aabbccde' }), 'elsewhere');
  assert.equal(kindOf({ ...owner, pid: 4712 }), 'elsewhere');
});
