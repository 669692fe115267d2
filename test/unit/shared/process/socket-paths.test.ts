// The sockets of workers: those of dead workers are removed, and a failure to remove one does no harm.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import {
  removeStaleWorkerSockets,
  removeWorkerSocket,
  workerSocketPath,
} from '../../../../src/shared/process/socket-paths.ts';

let directory: string;
let pidfile: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'worker-sockets-'));
  pidfile = join(directory, 'world.pid');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** The number of a process that is gone. */
function deadPid(): number {
  return spawnSync(process.execPath, ['--version']).pid;
}

test('the sockets of processes that are gone are removed, and no others', () => {
  const dead = workerSocketPath(pidfile, deadPid());
  const living = workerSocketPath(pidfile, process.pid);
  const another = workerSocketPath(join(directory, 'other.pid'), deadPid());
  for (const path of [dead, living, another]) writeFileSync(path, '');
  removeStaleWorkerSockets(pidfile);
  assert.deepEqual([dead, living, another].map(existsSync), [false, true, true]);
});

test('a socket that cannot be removed, and a directory that is gone, are left alone', () => {
  const pid = deadPid();
  mkdirSync(workerSocketPath(pidfile, pid));
  removeWorkerSocket(pidfile, pid);
  removeStaleWorkerSockets(pidfile);
  assert.equal(existsSync(workerSocketPath(pidfile, pid)), true);
  rmSync(directory, { recursive: true });
  removeWorkerSocket(pidfile, pid);
  removeStaleWorkerSockets(pidfile);
});
