// --foreground: runs an instance in this process, for service managers and containers.
import type { Environment, Target } from '../shared/config/load-config.ts';
import { type ExitCode, exitCodes } from '../shared/process/exit-codes.ts';
import { prepare } from './prepare.ts';
import { reportReady } from './readiness.ts';
import { supervise } from './supervise.ts';
import { live } from './supervisor-process.ts';

/** Runs an instance until it is stopped, on the socket of `activation` if there is one. Reports to `notifySocket` when it serves. Returns its exit status. */
export async function runInForeground(
  target: Target,
  env: Environment,
  activation: string | null,
  notifySocket: string | null,
): Promise<ExitCode> {
  process.umask(0o027);
  // Before there is anything to drain, a signal ends the start.
  const abort = () => process.exit(exitCodes.ok);
  process.on('SIGTERM', abort);
  process.on('SIGINT', abort);
  process.on('SIGQUIT', abort);
  const prepared = await prepare(target, env, activation, 'stderr');
  if (!prepared.ok) return prepared.exitCode;
  const { log } = prepared;
  const bootBoundMs = prepared.remainingMs();
  const supervision = supervise({
    ...prepared,
    logTo: 'stderr',
    bootBoundMs,
    onRunning: () => {
      if (notifySocket !== null) reportReady(notifySocket, log);
    },
  });
  process.off('SIGTERM', abort);
  process.off('SIGINT', abort);
  process.off('SIGQUIT', abort);
  return live(supervision, log);
}
