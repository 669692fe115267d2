// Sockets with eased creation leave no separate hidden classes behind.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

const sockets = 5_000;
const url = new URL('../../../../src/worker/http/socket-creation.js', import.meta.url).href;

// Hidden classes are in the old space; a large young generation keeps all else out of it.
const program = `
import { Socket } from 'node:net';
import { getHeapSpaceStatistics } from 'node:v8';
if (process.argv[1] === 'eased') (await import(${JSON.stringify(url)})).easeSocketCreation();
const create = (count) => {
  for (let n = 0; n < count; n += 1) {
    new Socket({ allowHalfOpen: true, readable: false, writable: false, readableHighWaterMark: 1 }).destroy();
  }
};
const used = () => getHeapSpaceStatistics().find((space) => space.space_name === 'old_space').space_used_size;
create(500);
const before = used();
create(${sockets});
console.log(used() - before);
`;

/** Bytes that a socket adds to the old space. */
function bytesEach(how: 'plain' | 'eased'): number {
  const flags = ['--min-semi-space-size=64', '--max-semi-space-size=64', '--input-type=module'];
  const output = execFileSync(process.execPath, [...flags, '-e', program, how], {
    encoding: 'utf8',
  });
  return Number(output) / sockets;
}

test('sockets that were eased share their hidden classes', (t) => {
  const plain = bytesEach('plain');
  if (plain < 500) {
    t.skip(`this V8 has them shared anyway: ${plain} bytes a socket`);
    return;
  }
  const eased = bytesEach('eased');
  assert.ok(eased < plain / 4, `${eased} bytes a socket, ${plain} without`);
});
