// Statements that take long, told in the log by their shape: never a literal.
// Must not know HTTP, nor where the log goes.
import type { Log } from '../../shared/process/log.ts';
import { digest } from '../../shared/sql/digest.ts';
import type { ExchangeSummary } from './exchange-summary.ts';

/** Whether they were slow; if so, they have been logged. */
export type NoteSlow = (ran: ExchangeSummary) => boolean;

const deadlinePassed = 504;

/**
 * @param thresholdMs the running time from which statements are slow; 0: none is. Those killed at their deadline are,
 * those that never reached MySQL are not: what took so long was not theirs.
 */
export function createSlowStatements(log: Log, thresholdMs: number): NoteSlow {
  if (thresholdMs === 0) return () => false;
  return ({ requestId, status, outcome, sql, rows, queueMs, databaseMs }) => {
    if (sql === null || outcome === 'not_executed') return false;
    if (databaseMs < thresholdMs && status !== deadlinePassed) return false;
    log.warn('slow statement', {
      request_id: requestId,
      waited_ms: Math.round(queueMs),
      ran_ms: Math.round(databaseMs),
      rows,
      outcome,
      statement: digest(sql),
    });
    return true;
  };
}
