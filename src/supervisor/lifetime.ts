// A process that is a supervisor, detached or not: its signals, its last words, its exit status.
// Must not know how it was started.
import type { ExitCode } from '../shared/process/exit-codes.ts';
import type { OwnedLog } from '../shared/process/log.ts';
import type { Supervision } from './supervise.ts';

const crashStatus = 70;

/** Connects signals to a lifecycle, before anybody can know whom to send them to, and runs it; its exit status. */
export async function live(supervision: Supervision, log: OwnedLog): Promise<ExitCode> {
  process.on('SIGTERM', supervision.stop);
  process.on('SIGINT', supervision.stop);
  process.on('SIGHUP', supervision.renew);
  const crash = (error: unknown) => {
    // Workers end by their watchdogs, the claim with this process; the pidfile is left to be found stale.
    log.error('the supervisor failed', {
      stack: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    process.exit(crashStatus);
  };
  process.on('uncaughtException', crash);
  process.on('unhandledRejection', crash);
  process.on('exit', log.flush);
  return supervision.run();
}
