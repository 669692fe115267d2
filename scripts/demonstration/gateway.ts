// The demo's dbhttpd: its configuration, its silent start, its pidfile.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { command } from '../../test/support/command.ts';
import { formatSection } from '../../test/support/ini-text.ts';
import { freePort } from '../support/private-server.ts';
import { idempotencyTable } from './playground.ts';
import { findRunning, stopRunning } from './running.ts';
import type { Places, State } from './state.ts';

/** The named statements, in the checkout. The gateway reads them again when they change. */
export const namedDirectory: string = fileURLToPath(
  new URL('../../../scripts/demonstration/named', import.meta.url),
);

/** The running gateway. `restarted`: an older one, with other settings or older code, was stopped first. */
export type Gateway = {
  readonly url: string;
  readonly pid: number;
  readonly what: 'running' | 'started' | 'restarted';
};

/** The command that starts the gateway, as a person would type it. */
export function startCommand(places: Places): string[] {
  return [process.execPath, command, '-c', places.config, '-s', 'world'];
}

/** Makes sure that the gateway runs, with this database and the code of this checkout. */
export async function ensureGateway(places: Places, state: State): Promise<Gateway> {
  const running = findRunning(places.pidfile, isSupervisor);
  if (running !== null && isCurrent(places, state)) {
    return { url: `http://${readListen(places)}`, pid: running, what: 'running' };
  }
  await stopGateway(places);

  const listen = `127.0.0.1:${await freePort(places.wishedPort)}`;
  writeFileSync(places.config, configText(places, state, listen), { mode: 0o600 });
  const [command = '', ...args] = startCommand(places);
  const start = spawnSync(command, args, { stdio: 'inherit', timeout: 60_000 });
  const pid = findRunning(places.pidfile, isSupervisor);
  if (start.status !== 0 || pid === null) {
    const log = existsSync(places.log) ? readFileSync(places.log, 'utf8') : '(no log)';
    const lastLines = log.split('\n').slice(-12).join('\n');
    throw new Error(`dbhttpd did not start: exit ${start.status}\n${places.log}:\n${lastLines}`);
  }
  return { url: `http://${listen}`, pid, what: running === null ? 'started' : 'restarted' };
}

/** Ends the gateway; false when none runs. */
export function stopGateway(places: Places): Promise<boolean> {
  return stopRunning(places.pidfile, isSupervisor);
}

function isSupervisor(commandLine: string): boolean {
  return commandLine === 'dbhttpd: supervisor world';
}

function configText(places: Places, state: State, listen: string): string {
  const section = formatSection('world', {
    database: 'world',
    host: '127.0.0.1',
    user: 'app',
    password: state.appPassword,
    port: state.databasePort,
    listen,
    idempotency_table: idempotencyTable,
    named: namedDirectory,
    named_watch: 'on',
    pidfile: places.pidfile,
    log: places.log,
  });
  return `; Written by scripts/demo, for ${command}\n${section}`;
}

/** Tells whether the running gateway was started from this checkout, for this database, and is younger than all sources. */
function isCurrent(places: Places, state: State): boolean {
  const written = existsSync(places.config) ? readFileSync(places.config, 'utf8') : '';
  if (written !== configText(places, state, readListen(places))) return false;
  const sources = fileURLToPath(new URL('../../../src', import.meta.url));
  const started = statSync(places.pidfile).mtimeMs;
  return readdirSync(sources, { recursive: true, encoding: 'utf8' }).every(
    (name) => statSync(join(sources, name)).mtimeMs < started,
  );
}

function readListen(places: Places): string {
  return /^listen = (\S+)$/m.exec(readFileSync(places.config, 'utf8'))?.[1] ?? '';
}
