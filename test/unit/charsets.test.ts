// Every character set that MySQL can name has a decoder.
// Must not need a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import iconv from 'iconv-lite';
import { foreignEncoding, isBinaryCharset } from '../../src/worker/mysql/charsets.ts';

test('every character set number leads to UTF-8 or to an encoding that can be decoded', () => {
  for (let charset = 0; charset < 4096; charset += 1) {
    const encoding = foreignEncoding(charset);
    assert.ok(encoding === null || iconv.encodingExists(encoding), `${charset}: ${encoding}`);
  }
});

test('what the gateway asks for is UTF-8 already, and binary is no text', () => {
  for (const charset of [45, 33, 255, 224, 11]) assert.equal(foreignEncoding(charset), null);
  assert.equal(foreignEncoding(8), 'win1252');
  assert.equal(isBinaryCharset(63), true);
  assert.equal(isBinaryCharset(45), false);
});
