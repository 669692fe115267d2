// Readiness for systemd: reports that an instance in the foreground serves, where systemd asks for it (Type=notify).
import { type ChildProcess, spawn } from 'node:child_process';
import type { Log } from '../shared/process/log.ts';

/** Far more than a datagram takes; systemd gives up a start by its own limit. */
const notifyBoundMs = 5000;

/** Takes NOTIFY_SOCKET out of the environment, so that no worker inherits it. Null: systemd waits for no report. */
export function takeNotifySocket(env: NodeJS.ProcessEnv): string | null {
  const { NOTIFY_SOCKET: socket } = env;
  delete env.NOTIFY_SOCKET;
  return socket === undefined || socket === '' ? null : socket;
}

/**
 * Reports READY=1 by systemd-notify(1), since Node has no datagram sockets of this kind. Logs a fault and goes on: the gateway serves all
 * the same. Source: sd_notify(3).
 */
export function reportReady(socket: string, log: Log): void {
  const fail = (reason: string) => log.warn('cannot report readiness to systemd', { reason });
  let child: ChildProcess;
  try {
    child = notify(socket);
  } catch (error) {
    // ENOMEM, for example.
    fail((error as Error).message);
    return;
  }
  child.once('error', ({ message }) => fail(message));
  child.once('exit', (status, signal) => {
    if (status !== 0) fail(`systemd-notify: ${signal ?? `exit status ${status}`}`);
  });
}

function notify(socket: string): ChildProcess {
  return spawn('systemd-notify', ['--ready'], {
    stdio: 'ignore',
    env: { PATH: process.env.PATH ?? '', NOTIFY_SOCKET: socket },
    timeout: notifyBoundMs,
    killSignal: 'SIGKILL',
  });
}
