// The token of a held transaction is one for its own section and owner alone, and for no other transaction.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decodeTransactionToken,
  encodeTransactionToken,
} from '../../../../../src/worker/execution/transactions/transaction-token.ts';

const key = Buffer.alloc(32, 1);
const name = { pid: 4_000_000_000, incarnation: '00112233aabbccdd', serial: 281_474_976_710_655 };
const bearer = { section: 'shop', owner: '["web","a user"]' };
const text = encodeTransactionToken(name, bearer, key);

test('a token names its transaction to its own owner', () => {
  assert.deepEqual(decodeTransactionToken(text, bearer, key), name);
});

test('a token is invalid for an owner that differs in one character, in any place', () => {
  const { owner } = bearer;
  for (let at = 0; at < owner.length; at += 1) {
    const other = `${owner.slice(0, at)}#${owner.slice(at + 1)}`;
    assert.equal(decodeTransactionToken(text, { ...bearer, owner: other }, key), null, `${at}`);
  }
  for (const other of ['', owner.slice(0, -1), `${owner}x`]) {
    assert.equal(decodeTransactionToken(text, { ...bearer, owner: other }, key), null, other);
  }
});

test('a token is none for another section, nor by the key of another instance', () => {
  assert.equal(decodeTransactionToken(text, { ...bearer, section: 'shop2' }, key), null);
  const moved = { section: 'sho', owner: `p${bearer.owner}` };
  assert.equal(decodeTransactionToken(text, moved, key), null);
  assert.equal(decodeTransactionToken(text, bearer, Buffer.alloc(32, 2)), null);
});

test('a token of which any bit was changed names nothing', () => {
  const bytes = Buffer.from(text, 'base64url');
  for (let bit = 0; bit < 8 * bytes.length; bit += 1) {
    const forged = Buffer.from(bytes);
    forged.writeUInt8(forged.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    assert.equal(decodeTransactionToken(forged.toString('base64url'), bearer, key), null, `${bit}`);
  }
});
