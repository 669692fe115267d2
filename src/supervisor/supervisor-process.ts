// A process that is a supervisor, detached or not: its signals, its last words, its exit status.
import type { ExitCode } from '../shared/process/exit-codes.ts';
import type { OwnedLog } from '../shared/process/log.ts';

/** A lifecycle. */
export type Supervision = {
  /** Starts and stops it; the exit status, when everything has ended. To be called once. */
  readonly run: () => Promise<ExitCode>;
  /** Drains; asked a second time, or before the instance runs, stops at once. */
  readonly stop: () => void;
  /** Opens the log files anew, and reads certificates, keys, password and tokens anew, for all workers. */
  readonly renew: () => void;
};

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

/**
 * Flags of a detached supervisor, which makes garbage for scrapes and snapshots alone, and has time to collect it: a
 * young generation of 3 × 1 MiB, and an old one that grows by small steps. With a small young generation alone (2 MiB)
 * 6,000 scrapes took it from 67 to 92 MB, a sawtooth of 18 MB over 6 MB that live; so it stays between 70 and 77.
 */
export const supervisorHeapLimits: readonly string[] = ['--optimize-for-size'];
