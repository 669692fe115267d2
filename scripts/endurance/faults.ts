// The plan of faults, and which faults were in progress at a time; pure.
import type { Database } from '../../test/support/database/mariadb.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { Gateway } from '../../test/support/gateway.ts';
import { isAlive } from '../../test/support/processes.ts';
import { readMetric } from '../../test/support/scrape.ts';

/** Faults of a worker: killed, stopped. Faults of the database: restarted, crashed. Reopening the log is no fault. */
export type FaultKind = 'kill' | 'stop' | 'restart' | 'crash' | 'reopen';

/** A planned fault. */
export type Planned = { readonly atMs: number; readonly kind: FaultKind };

const longestRoundMs = 75_000;
/** The supervisor replaces a stopped worker after ten seconds, so a shorter round stops none. */
const minForStopMs = 40_000;

/**
 * Each quarter of the run has the same faults at the same places, in one or more rounds, so that quarters can be
 * compared. A round has a killed worker, a reopened log, a restart of the database (every second one a crash), and,
 * when it is long enough, a stopped worker; its last tenth is left alone.
 */
export function planFaults(runMs: number): readonly Planned[] {
  const quarterMs = runMs / 4;
  const rounds = Math.max(1, Math.floor(quarterMs / longestRoundMs));
  const roundMs = quarterMs / rounds;
  return Array.from({ length: 4 * rounds }, (_, round): Planned[] => {
    const at = (share: number) => (round + share) * roundMs;
    const stop: Planned[] = roundMs < minForStopMs ? [] : [{ atMs: at(0.6), kind: 'stop' }];
    return [
      { atMs: at(0.1), kind: 'kill' },
      { atMs: at(0.25), kind: 'reopen' },
      { atMs: at(0.35), kind: round % 2 === 0 ? 'restart' : 'crash' },
      ...stop,
    ];
  }).flat();
}

type Span = { readonly kind: FaultKind; readonly fromMs: number; toMs: number };

/** After a fault the pools open their connections again. Nothing is measured during this time. */
const settleMs = 4_000;
/** A client may read of a worker's end a moment later. A pool waits up to a second before it connects again. */
const echoMs = { worker: 500, database: 2_000 } as const;

/** The past faults, and the one in progress. */
export class FaultLog {
  readonly #spans: Span[] = [];

  /** Begins a fault; call the result when it is over. */
  begin(kind: FaultKind, atMs: number): (overAtMs: number) => void {
    const span: Span = { kind, fromMs: atMs, toMs: Number.POSITIVE_INFINITY };
    this.#spans.push(span);
    return (overAtMs) => {
      span.toMs = overAtMs;
    };
  }

  /** The faults that may have harmed something that lasted from then to then. */
  excusesFor(fromMs: number, toMs: number): { worker: boolean; database: boolean } {
    const under = (lateMs: number, ...kinds: readonly FaultKind[]) =>
      this.#spans.some(
        (span) => kinds.includes(span.kind) && span.fromMs <= toMs && fromMs <= span.toMs + lateMs,
      );
    return {
      worker: under(echoMs.worker, 'kill', 'stop'),
      database: under(echoMs.database, 'restart', 'crash'),
    };
  }

  isQuiet(atMs: number): boolean {
    return !this.#spans.some(({ fromMs, toMs }) => fromMs <= atMs && atMs <= toMs + settleMs);
  }
}

/** Makes one fault and resolves when it is over. */
export type Strike = (kind: FaultKind) => Promise<void>;

const replacedWithinMs = { kill: 5_000, stop: 15_000 } as const;

/** `veteran` is never struck: a leak shows in a worker that lives from the beginning to the end. */
export function createStrike(gateway: Gateway, database: Database, veteran: number): Strike {
  const endWorker = async (kind: 'kill' | 'stop') => {
    const victim = gateway.workers().find((pid) => pid !== veteran);
    if (victim === undefined) throw new Error('there is no second worker');
    process.kill(victim, kind === 'kill' ? 'SIGKILL' : 'SIGSTOP');
    await eventually(
      'a worker is replaced',
      async () =>
        !isAlive(victim) &&
        gateway.workers().length === 2 &&
        (await readMetric(gateway, 'dbhttpd_worker_up')) === 2,
      { timeoutMs: replacedWithinMs[kind], everyMs: 100 },
    );
  };
  const restart = async (signal: 'SIGTERM' | 'SIGKILL') => {
    await database.halt(signal);
    await database.resume();
    await eventually('the database is back for all', async () => {
      const [ready, other] = await Promise.all([gateway.get('/readyz'), gateway.get('/readyz')]);
      return ready.status === 200 && other.status === 200;
    });
  };
  return (kind) => {
    switch (kind) {
      case 'kill':
      case 'stop':
        return endWorker(kind);
      case 'restart':
        return restart('SIGTERM');
      case 'crash':
        return restart('SIGKILL');
      case 'reopen':
        process.kill(gateway.pid, 'SIGHUP');
        return Promise.resolve();
      default:
        throw new Error(`no such fault: ${kind satisfies never}`);
    }
  };
}
