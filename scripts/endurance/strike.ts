// Makes the faults of a mixed run: on one and the same slot's worker, on the database, on the log.
// Must not know the clients.

import type { Database } from '../../test/support/database/mariadb.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { Gateway } from '../../test/support/gateway.ts';
import { isAlive } from '../../test/support/processes.ts';
import { readMetric } from '../../test/support/scrape.ts';
import type { FaultKind } from './faults.ts';

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
