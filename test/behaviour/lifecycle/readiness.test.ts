// Readiness for systemd: READY=1 comes once, when every worker listens, and nothing inherits the socket.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { daemonFor } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';

/** Receives datagrams as systemd does, and prints each on a line behind the mark. perl is part of every Debian. */
const receiver = `
use Socket; $| = 1;
socket(my $s, PF_UNIX, SOCK_DGRAM, 0) or die $!;
bind($s, sockaddr_un($ARGV[0])) or die $!;
print "open\\n";
while (defined recv($s, my $text, 4096, 0)) { print "got:", join(",", split(/\\n/, $text)), "\\n"; }`;

const isInstalled = spawnSync('systemd-notify', ['--version']).error === undefined;

test('an instance in the foreground reports readiness once it serves', {
  skip: isInstalled ? false : 'systemd-notify is not installed',
}, async (t) => {
  const daemon = daemonFor(t, { workers: '2' });
  const socket = join(daemon.directory, 'notify');
  const systemd = spawn('perl', ['-e', receiver, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => systemd.kill('SIGKILL'));
  let received = '';
  systemd.stdout.on('data', (bytes) => {
    received += bytes;
  });
  await eventually('the receiver listens', () => received.includes('open'));
  const child = daemon.spawn(['--foreground'], { NOTIFY_SOCKET: socket });
  let log = '';
  child.stderr?.on('data', (bytes) => {
    log += bytes;
  });
  await eventually('it has reported', () => /^got:.*READY=1/m.test(received));
  assert.match(log, / listening /);
  assert.equal(received.match(/READY=1/g)?.length, 1);
  const workers = await eventually('systemd-notify has ended, and the workers are left', () => {
    const children = daemon.workers();
    return children.length === 2 && children;
  });
  for (const worker of workers) {
    assert.doesNotMatch(readFileSync(`/proc/${worker}/environ`, 'latin1'), /NOTIFY_SOCKET/);
  }
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  assert.doesNotMatch(log, /cannot report/);
});

test('a report that fails is logged, and the instance serves', async (t) => {
  const daemon = daemonFor(t, { workers: '1' });
  const socket = join(daemon.directory, 'missing');
  const child = daemon.spawn(['--foreground'], { NOTIFY_SOCKET: socket });
  let log = '';
  child.stderr?.on('data', (bytes) => {
    log += bytes;
  });
  await eventually('the failure is logged', () => /cannot report readiness/.test(log));
  assert.match(log, / listening /);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
});
