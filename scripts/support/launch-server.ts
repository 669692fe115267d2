// Starts a prepared database server and waits until it answers.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { eventually } from '../../test/support/eventually.ts';
import type { ServerFiles, ServerProgram } from './private-server.ts';

const setpriv = '/usr/bin/setpriv';

/**
 * Starts the server and resolves once both its socket and its port answer. `tied`: the kernel ends it with
 * this process; else it is detached and stays. Rejects with the server's log.
 */
export async function launchServer(server: {
  readonly program: ServerProgram;
  readonly args: readonly string[];
  readonly files: ServerFiles;
  readonly port: number;
  readonly tied: boolean;
  /** The PATH on which the server finds programs; this process's own by default. */
  readonly path?: string;
}): Promise<ChildProcess> {
  const { files, port, tied, path = process.env.PATH } = server;
  const tie = tied && existsSync(setpriv) ? [setpriv, '--pdeathsig', 'KILL'] : [];
  const [command = '', ...args] = [...tie, ...server.program.command, ...server.args];
  const log = openSync(files.log, 'w');
  const child = spawn(command, args, {
    stdio: ['ignore', log, log],
    detached: !tied,
    env: { ...process.env, PATH: path },
  });
  closeSync(log);
  child.unref();
  try {
    await eventually(
      'the server accepts connections',
      async () => hasEnded(child) || (await greets({ port, socket: files.socket })),
      { timeoutMs: 60_000 },
    );
    if (hasEnded(child)) throw new Error('the server has ended');
    return child;
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`the server did not start: ${readFileSync(files.log, 'utf8')}`, {
      cause: error,
    });
  }
}

/** Tells whether a child process has ended. */
export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Tells whether both the socket and the port answer with a server's first packet. */
export async function greets(address: { port: number; socket: string }): Promise<boolean> {
  const answers = [{ port: address.port, host: '127.0.0.1' }, { path: address.socket }].map(
    (target) =>
      new Promise<boolean>((resolve) => {
        const connection = createConnection(target);
        connection.setTimeout(1000, () => connection.destroy());
        connection.once('data', () => {
          resolve(true);
          connection.destroy();
        });
        connection.once('error', () => resolve(false));
        connection.once('close', () => resolve(false));
      }),
  );
  return (await Promise.all(answers)).every(Boolean);
}
