// The real command with a socket that another process has bound, as systemd passes it (sd_listen_fds(3)).
import { type ChildProcess, spawn } from 'node:child_process';
import { command } from '../../../support/command.ts';
import type { Daemon } from '../../../support/daemon.ts';

/** How the command is activated. `pid` null: the variables name the command itself, else that process. */
export type Activation = {
  readonly fd: number;
  readonly count?: string;
  readonly pid?: number | null;
  readonly args?: readonly string[];
};

/** Runs the command with descriptor 3 and LISTEN_FDS. The caller must end processes that do not end by themselves. */
export function spawnActivated(daemon: Daemon, activation: Activation): ChildProcess {
  const { fd, count = '1', pid = null, args = [] } = activation;
  const script = `export LISTEN_PID=${pid ?? '$$'} LISTEN_FDS='${count}' LISTEN_FDNAMES=http; exec "$@"`;
  const words = [process.execPath, command, ...args, '-c', daemon.configPath, '-s', 'world'];
  return spawn('sh', ['-c', script, 'sh', ...words], {
    stdio: ['ignore', 'ignore', 'ignore', fd],
  });
}

/** A start, detached; resolves to its exit status. */
export async function startActivated(
  daemon: Daemon,
  activation: Activation,
): Promise<number | null> {
  const child = spawnActivated(daemon, activation);
  const status = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  // Finding the pid makes the daemon's owner end it.
  daemon.findPid();
  return status;
}
