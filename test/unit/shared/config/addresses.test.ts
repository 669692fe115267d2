// `host` names servers, or the fault names the item that is wrong.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  candidatesOf,
  findRepeated,
  formatCandidate,
  parseHosts,
} from '../../../../src/shared/config/addresses.ts';

function named(text: string, port = 3306): readonly string[] {
  const hosts = parseHosts(text);
  assert.ok(typeof hosts !== 'string', String(hosts));
  return candidatesOf(hosts, port, null).map(formatCandidate);
}

test('an item without a port uses that of the key, and every server is named with its port', () => {
  assert.deepEqual(
    named('10.0.0.1, 10.0.0.2:3307,db3.internal ,[::1]:3308, [fe80::2], ::3', 3310),
    [
      '10.0.0.1:3310',
      '10.0.0.2:3307',
      'db3.internal:3310',
      '[::1]:3308',
      '[fe80::2]:3310',
      '[::3]:3310',
    ],
  );
});

test('a socket is named by its path', () => {
  assert.deepEqual(candidatesOf(null, 3306, '/run/m.sock').map(formatCandidate), ['/run/m.sock']);
});

test('finds a server that is listed twice, without regard to case, with or without its port', () => {
  const repeated = (text: string) => findRepeated(candidatesOf(hostsOf(text), 3306, null));
  assert.deepEqual(repeated('a, b, A:3306'), ['A:3306']);
  assert.deepEqual(repeated('a, a:3307, b'), []);
  assert.deepEqual(repeated('::1, [::1]:3306'), ['[::1]:3306']);
});

function hostsOf(text: string) {
  const hosts = parseHosts(text);
  return typeof hosts === 'string' ? null : hosts;
}

for (const [text, problem] of [
  ['a,,b', /^item 2 is empty$/],
  ['a, b:0', /^item 2 \(b:0\) must have a port/],
  ['a:65536', /^item 1 \(a:65536\) must have a port/],
  ['a, [::g]:1', /^item 2 has no IPv6 address/],
  ['[10.0.0.1]:3306', /^item 1 \(\[10\.0\.0\.1\]:3306\) has no IPv6/],
  ['a b', /^item 1 must be a host name/],
  ['a, b:port', /^item 2 must be a host name/],
] as const) {
  test(`the item that is no server is named: ${text}`, () => {
    assert.match(String(parseHosts(text)), problem);
  });
}

test('a URL with a password, put there by mistake, is not repeated', () => {
  for (const text of ['mysql://app:hunter2@db', 'app:hunter2@db', 'hunter2@db:3306']) {
    assert.doesNotMatch(String(parseHosts(text)), /hunter/);
  }
});
