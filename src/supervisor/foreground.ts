// Runs an instance in this very process, for service managers and containers.
// Must not know the detached way.

import { type ExitCode, exitCodes } from '../shared/process/exit-codes.ts';
import type { Environment, Target } from '../shared/settings/config-file.ts';
import { live } from './lifetime.ts';
import { prepare } from './prepare.ts';
import { supervise } from './supervise.ts';

/** Runs until it is stopped; the exit status of the instance, or of a start that failed. */
export async function runInForeground(target: Target, env: Environment): Promise<ExitCode> {
  process.umask(0o027);
  // A signal before there is anything to drain ends the start.
  const abort = () => process.exit(exitCodes.ok);
  process.on('SIGTERM', abort);
  process.on('SIGINT', abort);
  const prepared = await prepare(target, env, 'stderr');
  if (!prepared.ok) return prepared.exitCode;
  const { log } = prepared;
  const bootBoundMs = prepared.remainingMs();
  const supervision = supervise({
    ...prepared,
    logTo: 'stderr',
    bootBoundMs,
    onRunning: () => {},
  });
  process.off('SIGTERM', abort);
  process.off('SIGINT', abort);
  return live(supervision, log);
}
