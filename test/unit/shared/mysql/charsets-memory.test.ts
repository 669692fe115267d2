// Text in a character set with millions of characters leaves nothing behind. The file has a process of its own: it measures memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { decode } from '../../../../src/shared/mysql/charsets.ts';

test('a million characters of GB 18030 are not kept', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const heapBytes = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const bytes = Buffer.alloc(4 * 1_000_000);
  for (let at = 0; at < bytes.length; at += 4) {
    const n = at / 4;
    bytes[at] = 0x81 + Math.floor(n / 12_600);
    bytes[at + 1] = 0x30 + (Math.floor(n / 1_260) % 10);
    bytes[at + 2] = 0x81 + (Math.floor(n / 10) % 126);
    bytes[at + 3] = 0x30 + (n % 10);
  }
  const before = heapBytes();
  decode(bytes, 'gb18030');
  const kept = heapBytes() - before;
  assert.ok(kept < 16 * 2 ** 20, `${kept} bytes are kept`);
});
