// Which start gets an instance: one at a time, whatever foreign files are in the place of the claim's files.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { daemonFor } from '../../support/daemon.ts';
import { logShows } from '../../support/log-shows.ts';
import { gone, isAlive } from '../../support/processes.ts';

const isRoot = process.getuid?.() === 0;
const stranger = 12_345;

test('a lock file that is a link, no file or of a stranger is not opened: exit 73, the reason in the log', async (t) => {
  const daemon = daemonFor(t);
  const lock = `${daemon.pidfile}.lock`;
  const precious = join(daemon.directory, 'precious');
  writeFileSync(precious, 'precious', { mode: 0o644 });
  const obstacles: [() => void, RegExp][] = [
    [() => symlinkSync(precious, lock), /ELOOP/],
    [() => mkdirSync(lock), /EISDIR/],
    [() => execFileSync('mkfifo', [lock]), /is not a regular file/],
  ];
  if (isRoot) {
    const put = () => {
      writeFileSync(lock, '');
      chownSync(lock, stranger, stranger);
    };
    obstacles.push([put, /belongs to another user/]);
  }
  for (const [put, reason] of obstacles) {
    put();
    assert.deepEqual(await daemon.start(), { status: 73, stdout: '', stderr: '' });
    await logShows(daemon, reason);
    rmSync(lock, { recursive: true });
  }
  assert.equal(readFileSync(precious, 'utf8'), 'precious');
  assert.equal((await daemon.start()).status, 0);
});

test('a foreign file in the place of the phase is never believed, and deleted only if it is a dead socket', async (t) => {
  const daemon = daemonFor(t);
  const socket = `${daemon.pidfile}.sock`;
  writeFileSync(socket, 'precious');
  assert.equal((await daemon.start()).status, 73);
  await logShows(daemon, /cannot create the pidfile .*is in the way/);
  assert.equal(readFileSync(socket, 'utf8'), 'precious');
  rmSync(socket);
  const impostor = createServer((asker) => asker.end('running\n')).listen(socket);
  try {
    await new Promise((resolve) => impostor.once('listening', resolve));
    // The start that failed has let the claim go: else the impostor's answer would count.
    assert.equal((await daemon.start()).status, 0);
    const bound = readFileSync(daemon.pidfile, 'utf8');
    assert.equal((await daemon.start()).status, 75);
    assert.equal(readFileSync(daemon.pidfile, 'utf8'), bound);
  } finally {
    await new Promise((resolve) => impostor.close(resolve));
  }
});

test('of twenty simultaneous starts one lives and nineteen exit 75; a kill and a start at once always end with one running', async (t) => {
  const daemon = daemonFor(t);
  const finished = await Promise.all(Array.from({ length: 20 }, () => daemon.start()));
  const statuses = finished.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [0, ...Array<number>(19).fill(75)]);
  assert.ok(finished.every(({ stdout, stderr }) => stdout === '' && stderr === ''));
  // One of many: each handover of the other tests is a kill and a start, too.
  const before = daemon.pid();
  assert.ok(isAlive(before));
  process.kill(before, 'SIGTERM');
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  assert.notEqual(daemon.pid(), before);
  assert.ok(isAlive(daemon.pid()));
});

test('a stale pidfile is replaced and its process not touched, in a deep directory too; a second start exits 75, logs the reason, and harms nothing', async (t) => {
  const daemon = daemonFor(t);
  const deep = join(daemon.directory, 'd'.repeat(100), 'e'.repeat(100));
  mkdirSync(deep, { recursive: true });
  const pidfile = join(deep, `${'n'.repeat(120)}.pid`);
  daemon.configure({ pidfile });
  const bystander = spawn('sleep', ['60'], { stdio: 'ignore' });
  writeFileSync(pidfile, `${bystander.pid}\n`);
  try {
    assert.equal((await daemon.start()).status, 0, daemon.readLog());
    const pid = Number(readFileSync(pidfile, 'utf8'));
    assert.deepEqual(await daemon.start(), { status: 75, stdout: '', stderr: '' });
    await logShows(daemon, /cannot be started .*it is running/);
    await logShows(daemon, new RegExp(`cannot be started .* pid=${pid} `));
    assert.equal(readFileSync(pidfile, 'utf8'), `${pid}\n`);
    process.kill(pid, 'SIGTERM');
    assert.equal((await daemon.start()).status, 0);
    const next = Number(readFileSync(pidfile, 'utf8'));
    process.kill(next, 'SIGTERM');
    await Promise.all([gone(pid), gone(next)]);
    assert.ok(!existsSync(pidfile));
    assert.ok(isAlive(bystander.pid ?? 0));
  } finally {
    bystander.kill('SIGKILL');
  }
});
