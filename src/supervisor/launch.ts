// Starts an instance in the background, waits for its report, and prints nothing.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Environment, Target } from '../shared/config/load-config.ts';
import { type ExitCode, exitCodes } from '../shared/process/exit-codes.ts';
import type { Log } from '../shared/process/log.ts';
import { endOrphans } from './claim/orphans.ts';
import type { FromDaemon, ToDaemon } from './daemon.ts';
import { prepare, withoutSecrets } from './prepare.ts';
import { supervisorHeapLimits } from './supervisor-process.ts';

/** The supervisor gives up this long before the launcher does, because it knows the reason. */
const reportMarginMs = 1000;

/**
 * Starts the instance of the first section, on the socket of `activation` if there is one. Resolves when every worker listens, or
 * the start has failed.
 */
export async function launch(
  target: Target,
  env: Environment,
  activation: string | null,
): Promise<ExitCode> {
  const prepared = await prepare(target, env, activation, 'file');
  if (!prepared.ok) return prepared.exitCode;
  const { sections, named, log, claim, listener, remainingMs } = prepared;
  const entry = new URL('./daemon.js', import.meta.url).pathname;
  const child = spawn(process.execPath, [...supervisorHeapLimits, entry], {
    detached: true,
    cwd: '/',
    env: withoutSecrets(env),
    stdio: ['ignore', 'ignore', 'ignore', 'ipc', claim.fd, listener.fd],
  });
  // The supervisor has its own copies. This process's must not outlive it.
  claim.close();
  listener.close();
  // Computed when the supervisor is ready, because the remaining time counts.
  const order = (): ToDaemon => ({
    sections,
    named,
    address: listener.address,
    outlives: listener.outlives,
    bootBoundMs: remainingMs() - reportMarginMs,
  });
  const exitCode = await report(child, order, remainingMs(), log);
  if (exitCode === null) {
    log.error('the start was given up', { reason: 'no report in time' });
    await kill(child);
    await endOrphans(sections[0].pidfile);
  }
  return exitCode ?? exitCodes.unavailable;
}

/** The exit status that the supervisor reports. Null: no report came in time. */
function report(
  child: ChildProcess,
  order: () => ToDaemon,
  boundMs: number,
  log: Log,
): Promise<ExitCode | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), boundMs);
    const conclude = (exitCode: ExitCode) => {
      clearTimeout(timer);
      resolve(exitCode);
    };
    child.on('message', (message) => {
      const said = message as FromDaemon;
      if (said.kind === 'ready') child.send(order(), () => {});
      else conclude(said.kind === 'running' ? exitCodes.ok : said.exitCode);
    });
    child.once('error', (error) => {
      log.error('cannot start the supervisor', { reason: error.message });
      conclude(exitCodes.unavailable);
    });
    child.once('exit', (code, signal) => {
      log.error('the supervisor ended without a report', {
        reason: signal ?? `exit status ${code}`,
      });
      conclude(exitCodes.unavailable);
    });
  });
}

function kill(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.removeAllListeners('exit');
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
