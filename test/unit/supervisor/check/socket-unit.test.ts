// An active socket unit of the gateway is recognised by its port or path in what systemctl shows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ListenAddress } from '../../../../src/shared/config/addresses.ts';
import { parseSocketUnits } from '../../../../src/supervisor/check/socket-unit.ts';

/** The form is that of systemd 255 for ssh.socket and cockpit.socket. */
const shown = `Listen=0.0.0.0:9090 (Stream)
Listen=[::]:9090 (Stream)
Id=dbhttpd@world.socket
ActiveState=active

Listen=/run/dbhttpd-city.sock (Stream)
Id=dbhttpd@city.socket
ActiveState=active

Listen=127.0.0.1:9092 (Stream)
Id=dbhttpd@stopped.socket
ActiveState=inactive

Listen=127.0.0.1:9093 (Datagram)
Id=dbhttpd@other.socket
ActiveState=active
`;

const tcp = (host: string | null, port: number): ListenAddress => ({ kind: 'tcp', host, port });
const unix = (path: string): ListenAddress => ({ kind: 'unix', path });

test('the unit that listens at the port or the path is found, if it is active', () => {
  for (const [listen, unit] of [
    [tcp('127.0.0.1', 9090), 'dbhttpd@world.socket'],
    [tcp(null, 9090), 'dbhttpd@world.socket'],
    [tcp('127.0.0.1', 90), null],
    [tcp('127.0.0.1', 9092), null],
    [tcp('127.0.0.1', 9093), null],
    [unix('/run/dbhttpd-city.sock'), 'dbhttpd@city.socket'],
    [unix('/run/dbhttpd'), null],
  ] as const) {
    assert.equal(parseSocketUnits(shown, listen), unit, JSON.stringify(listen));
  }
  assert.equal(parseSocketUnits('', tcp(null, 9090)), null);
});
