// The kernel's table of TCP sockets: read once for all callers, and parsed whatever it contains.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLines, SendQueues } from '../../../../src/worker/http/peers.ts';

const head =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const line = (queues: string, inode: number | string) =>
  `   0: 0100007F:1F90 0100007F:C350 01 ${queues} 01:00000014 00000000  1000        0 ${inode} 2 0000000000000000 20 4 30 10 -1\n`;

function parse(text: string, ...inodes: readonly number[]): readonly [number, number][] {
  const found = new Map<number, number>();
  parseLines(text, new Set(inodes), found);
  return [...found];
}

test('bytes are reported for the requested sockets', () => {
  const text = `${head}${line('0000FA00:00000000', 11)}${line('00000010:00000007', 12)}${line('00000001:00000000', 13)}`;
  assert.deepEqual(parse(text, 11, 12), [
    [11, 64_000],
    [12, 16],
  ]);
});

test('a line that is cut off waits for its rest', () => {
  const whole = line('00000010:00000000', 11);
  for (let at = 1; at < whole.length; at += 1) {
    const found = new Map<number, number>();
    const rest = parseLines(whole.slice(0, at), new Set([11]), found);
    assert.equal(found.size, 0);
    parseLines(rest + whole.slice(at), new Set([11]), found);
    assert.deepEqual([...found], [[11, 16]]);
  }
});

test('a text that is not a line of the table is left out', () => {
  const odd = [
    '\n',
    '11\n',
    `${'x'.repeat(500_000)}\n`,
    line('nothing', 11),
    line('-1:0', 11),
    head,
  ];
  assert.deepEqual(parse(odd.join(''), 11), []);
});

test('an endless line takes no memory', () => {
  const rest = parseLines('x'.repeat(10_000_000), new Set([11]), new Map());
  assert.ok(rest.length <= 64 * 1024);
});

test('all calls within a moment share one read', async () => {
  const reads: number[][] = [];
  const queues = new SendQueues(async (inodes) => {
    reads.push([...inodes]);
    return new Map([[1, 100]]);
  });
  const asked = [1, 2, 1].map((inode) => queues.unacknowledged(inode));
  assert.deepEqual(await Promise.all(asked), [100, null, 100]);
  assert.deepEqual(reads, [[1, 2]]);
  assert.equal(await queues.unacknowledged(1), 100);
  assert.equal(reads.length, 2);
});

test('without a table nothing is known', async () => {
  const queues = new SendQueues(() => Promise.reject(new Error('ENOENT')));
  assert.deepEqual(await Promise.all([queues.unacknowledged(1), queues.unacknowledged(2)]), [
    null,
    null,
  ]);
});
