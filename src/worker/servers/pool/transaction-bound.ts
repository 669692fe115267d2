// How long the server itself keeps a transaction open in which nothing runs: it hears no more from a gateway whose host has vanished.
// Must not know what runs in transactions.
import type { Connection } from '../../../shared/mysql/connection.ts';

/** Between two statements of a transaction of its own the gateway takes milliseconds. */
export const transactionBoundS = 10;
/** How much longer than the gateway itself the server waits. */
const marginS = 5;

/**
 * How often a session is pinged that the server takes for idle and the gateway does not: several times within the bound. In ms.
 */
export const pingEveryMs = (transactionBoundS * 1000) / 4;

type Server = Pick<Connection, 'flavour' | 'serverVersion'>;

/**
 * The assignment, for SET SESSION, that bounds transactions of a session. MariaDB has a variable for it. Elsewhere wait_timeout bounds all
 * sessions in which nothing runs, so that those which are kept idle must be pinged.
 */
export function boundTransactions(server: Server, seconds = transactionBoundS): string {
  return `${variableOf(server)}=${seconds}`;
}

/** The same for one that its client may leave idle. */
export function boundIdling(server: Server, idleMs: number): string {
  return boundTransactions(server, Math.max(transactionBoundS, Math.ceil(idleMs / 1000) + marginS));
}

/** Whether the bound is one of idle sessions too. */
export function needsPings(server: Server): boolean {
  return variableOf(server) === 'wait_timeout';
}

/** https://mariadb.com/kb/en/transaction-timeouts/: since MariaDB 10.3. */
function variableOf({ flavour, serverVersion }: Server): string {
  const [, major, minor] = /^(?:5\.5\.5-)?(\d+)\.(\d+)/.exec(serverVersion) ?? [];
  const hasOwn = flavour === 'mariadb' && Number(major) * 1000 + Number(minor) >= 10_003;
  return hasOwn ? 'idle_transaction_timeout' : 'wait_timeout';
}
