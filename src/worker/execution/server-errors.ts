// Errors that concern the server, not the statement: it is leaving, not ready, or does not accept writes any more.
import { isConnectFailure } from '../../shared/failure-codes.ts';
import type { RunEnd } from './execution.ts';

/** ER_OPTION_PREVENTS_STATEMENT (read_only), ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, ER_READ_ONLY_MODE. */
const refusesWrites = new Set([1290, 1792, 1836]);
/**
 * ER_UNKNOWN_COM_ERROR (a node of Galera that is not ready), ER_SERVER_SHUTDOWN, ER_RUN_HOOK_ERROR (a member that leaves its group), and 4094
 * (a group's former primary while another one takes its place).
 */
const isLeaving = new Set([1047, 1053, 3100, 4094]);

/** Whether an error shows that the server may have changed its role. @param isReadOnly the request itself asked for READ ONLY */
export function concernsServer(errno: number, isReadOnly: boolean): boolean {
  return isLeaving.has(errno) || (refusesWrites.has(errno) && !isReadOnly);
}

/** Whether no connection to the server could be opened. */
export function foundNoConnection(end: RunEnd): boolean {
  return 'reason' in end && isConnectFailure(end.reason);
}

/** Whether the end of a run shows that its server may have changed its role. */
export function endConcernsServer(end: RunEnd, isReadOnly: boolean): boolean {
  const errno = end.kind === 'answered' ? (end.failure?.error.errno ?? 0) : 0;
  return end.kind === 'lost' || foundNoConnection(end) || concernsServer(errno, isReadOnly);
}
