// Inherited sockets in the kernel's tables and in the environment.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  findTcp,
  findUnix,
  takeActivation,
} from '../../../../src/supervisor/listener/activation.ts';

const tcp = (local: string, state: string, inode: string) =>
  `  sl  local_address rem_address   st\n   1: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0000 100 0 0 10 0\n`;

test('a listening TCP socket is found by its inode, in both families', () => {
  const at = (local: string) => findTcp(tcp(local, '0A', '42'), '42');
  assert.deepEqual(at('0100007F:2382'), { kind: 'tcp', host: '127.0.0.1', port: 9090 });
  assert.deepEqual(at('00000000:0050'), { kind: 'tcp', host: null, port: 80 });
  assert.deepEqual(at(`${'0'.repeat(32)}:0050`), { kind: 'tcp', host: null, port: 80 });
  const loopback = `${'0'.repeat(24)}01000000:0050`;
  assert.deepEqual(at(loopback), { kind: 'tcp', host: '::1', port: 80 });
});

test('another socket, and one that does not listen, are not found', () => {
  assert.equal(findTcp(tcp('0100007F:2382', '0A', '42'), '43'), null);
  assert.equal(findTcp(tcp('0100007F:2382', '01', '42'), '42'), null);
});

const unix = (flags: string, type: string, rest: string) =>
  `Num RefCount Protocol Flags Type St Inode Path\nf30fd8ec: 00000002 00000000 ${flags} ${type} 01 ${rest}\n`;

test('a listening unix socket is found with its path, spaces included', () => {
  const path = '/run/a b.sock';
  assert.deepEqual(findUnix(unix('00010000', '0001', `42 ${path}`), '42'), { kind: 'unix', path });
  assert.equal(findUnix(unix('00000000', '0001', `42 ${path}`), '42'), null);
  assert.equal(findUnix(unix('00010000', '0005', `42 ${path}`), '42'), null);
  assert.equal(findUnix(unix('00010000', '0001', `142 ${path}`), '42'), null);
});

test('the variables are removed, for whichever process they were meant', () => {
  const env = { LISTEN_PID: '7', LISTEN_FDS: '1', LISTEN_FDNAMES: 'http', HOME: '/' };
  const other = { ...env };
  assert.equal(takeActivation(env, 7), '1');
  assert.equal(takeActivation(other, 8), null);
  assert.deepEqual([env, other], [{ HOME: '/' }, { HOME: '/' }]);
  assert.equal(takeActivation({ LISTEN_PID: '7', LISTEN_FDS: '0' }, 7), null);
  assert.equal(takeActivation({}, 7), null);
});
