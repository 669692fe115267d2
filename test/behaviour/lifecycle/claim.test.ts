// Who may stand in the way of a start, and how: what lies where the claim's files belong, and is not ours.
// Must not know what the gateway answers.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
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
import { afterEach, test } from 'node:test';
import { createDaemon, type Daemon, type Settings } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { gone, isAlive } from '../../support/processes.ts';

const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

function create(settings?: Settings): Daemon {
  const daemon = createDaemon(settings);
  daemons.push(daemon);
  return daemon;
}

const isRoot = process.getuid?.() === 0;
const stranger = 12_345;

test('a lock file that is a link, no file or of a stranger is not opened: exit 73, the reason in the log', async () => {
  const daemon = create();
  const lock = `${daemon.pidfile}.lock`;
  const precious = join(daemon.directory, 'precious');
  writeFileSync(precious, 'precious', { mode: 0o644 });
  const obstacles: [() => void, RegExp][] = [
    [() => symlinkSync(precious, lock), /ELOOP/],
    [() => mkdirSync(lock), /EISDIR/],
    [() => execFileSync('mkfifo', [lock]), /is no regular file/],
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
    assert.match(daemon.readLog(), reason);
    rmSync(lock, { recursive: true });
  }
  assert.equal(readFileSync(precious, 'utf8'), 'precious');
  assert.equal((await daemon.start()).status, 0);
});

test('what lies where the phase is asked is never believed, and deleted only if it is a dead socket', async () => {
  const daemon = create();
  const socket = `${daemon.pidfile}.sock`;
  writeFileSync(socket, 'precious');
  assert.equal((await daemon.start()).status, 73);
  assert.match(daemon.readLog(), /cannot create the pidfile .*is in the way/);
  assert.equal(readFileSync(socket, 'utf8'), 'precious');
  rmSync(socket);
  const impostor = createServer((asker) => asker.end('running\n')).listen(socket);
  try {
    await new Promise((resolve) => impostor.once('listening', resolve));
    // The start that failed may have the claim for a moment after its command has ended.
    const lock = ['-n', `${daemon.pidfile}.lock`, 'true'];
    await eventually('nobody has the claim', () => spawnSync('flock', lock).status === 0);
    assert.equal((await daemon.start()).status, 0);
    const bound = readFileSync(daemon.pidfile, 'utf8');
    assert.equal((await daemon.start()).status, 75);
    assert.equal(readFileSync(daemon.pidfile, 'utf8'), bound);
  } finally {
    await new Promise((resolve) => impostor.close(resolve));
  }
});

test('somebody who holds the lock and says nothing: exit 75 after 5 s, with a log line', async () => {
  const daemon = create();
  const lock = `${daemon.pidfile}.lock`;
  const holder = spawn('flock', [lock, 'sh', '-c', 'echo held; read _'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  chmodSync(lock, 0o600);
  try {
    assert.deepEqual(await daemon.start(), { status: 75, stdout: '', stderr: '' });
    assert.match(daemon.readLog(), /cannot be started reason="its holder does not answer"/);
  } finally {
    holder.stdin.end();
  }
  await new Promise((resolve) => holder.once('exit', resolve));
  assert.equal((await daemon.start()).status, 0);
});

test('a pidfile that names a stranger signals nobody, and a deep directory is no obstacle', async () => {
  const daemon = create();
  const deep = join(daemon.directory, 'd'.repeat(100), 'e'.repeat(100));
  mkdirSync(deep, { recursive: true });
  const pidfile = join(deep, `${'n'.repeat(120)}.pid`);
  daemon.configure({ pidfile });
  const bystander = spawn('sleep', ['60'], { stdio: 'ignore' });
  writeFileSync(pidfile, `${bystander.pid}\n`);
  try {
    assert.equal((await daemon.start()).status, 0, daemon.readLog());
    const pid = Number(readFileSync(pidfile, 'utf8'));
    assert.equal((await daemon.start()).status, 75);
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
