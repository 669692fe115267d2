// Which statements take long. Pure.
// Must not know who is told.
import type { ExchangeSummary } from './exchange-summary.ts';

const deadlinePassed = 504;

/**
 * Whether statements were slow. Those killed at their deadline are, those that never reached MySQL are not: what took so
 * long was not theirs.
 * @param slowMs the running time from which they are; 0: none is
 */
export function isSlow(ran: ExchangeSummary, slowMs: number): boolean {
  if (slowMs === 0 || ran.sql === null || ran.outcome === 'not_executed') return false;
  return ran.databaseMs >= slowMs || ran.status === deadlinePassed;
}
