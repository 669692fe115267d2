// The kernel's table of TCP connections: the names of connections in it, and its lines, whatever they contain.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { test } from 'node:test';
import {
  isEstablished,
  nameInTables,
  parseLines,
} from '../../../../src/shared/process/tcp-table.ts';

const head =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const local = '0100007F:1F90';
const nameOf = (port: number) => `${local} 0100007F:C3${port}`;
const line = (queues: string, port: number) =>
  `   0: ${nameOf(port)} 01 ${queues} 01:00000014 00000000  1000        0 77 2 0000000000000000 20 4 30 10 -1\n`;

function parse(text: string, ...ports: readonly number[]): readonly [string, number][] {
  const found = new Map<string, number>();
  parseLines(text, new Set(ports.map(nameOf)), found);
  return [...found];
}

test('bytes are reported for the requested connections', () => {
  const text = `${head}${line('0000FA00:00000000', 11)}${line('00000010:00000007', 12)}${line('00000001:00000000', 13)}`;
  assert.deepEqual(parse(text, 11, 12), [
    [nameOf(11), 64_000],
    [nameOf(12), 16],
  ]);
});

test('a line that is cut off waits for its rest', () => {
  const whole = line('00000010:00000000', 11);
  for (let at = 1; at < whole.length; at += 1) {
    const found = new Map<string, number>();
    const rest = parseLines(whole.slice(0, at), new Set([nameOf(11)]), found);
    assert.equal(found.size, 0);
    parseLines(rest + whole.slice(at), new Set([nameOf(11)]), found);
    assert.deepEqual([...found], [[nameOf(11), 16]]);
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
  const rest = parseLines('x'.repeat(10_000_000), new Set([nameOf(11)]), new Map());
  assert.ok(rest.length <= 64 * 1024);
});

test('a connection is named as the kernel prints it', () => {
  const name = (localAddress: string, remoteAddress: string) =>
    nameInTables({ localAddress, localPort: 8080, remoteAddress, remotePort: 5 });
  assert.equal(name('127.0.0.1', '10.1.2.3'), '0100007F:1F90 0302010A:0005');
  assert.equal(
    name('::ffff:127.0.0.1', '::1'),
    '0000000000000000FFFF00000100007F:1F90 00000000000000000000000001000000:0005',
  );
  assert.equal(
    name('fe80::1%eth0', '2001:db8:0:1:2:3:4:5'),
    '000080FE000000000000000001000000:1F90 B80D01200100000003000200' + '05000400:0005',
  );
  assert.equal(nameInTables({ localPort: 1 }), null);
});

for (const host of ['127.0.0.1', '::1']) {
  test(`an open connection by ${host} is found, and a closed one is not`, async () => {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, host);
    await once(client, 'connect');
    const { localAddress, localPort, remoteAddress, remotePort } = client;
    const ends = { localAddress, localPort, remoteAddress, remotePort };
    assert.equal(isEstablished(ends), true, readFileSync('/proc/self/net/tcp', 'latin1'));
    assert.equal(isEstablished({ ...ends, remotePort: 1 }), false);
    client.destroy();
    server.close();
  });
}
