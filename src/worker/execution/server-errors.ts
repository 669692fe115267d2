// Errors that tell of the server, not of the statement: it is going, not ready, or does not take writes any more.
// Must not know what follows.

import type { RunEnd } from './execution.ts';

/** ER_OPTION_PREVENTS_STATEMENT (read_only), ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, ER_READ_ONLY_MODE. */
const refusesWrites = new Set([1290, 1792, 1836]);
/**
 * ER_UNKNOWN_COM_ERROR (a node of Galera that is not ready), ER_SERVER_SHUTDOWN; of a group's former primary 4094, while another takes its
 * place; ER_RUN_HOOK_ERROR, of a member that leaves its group.
 */
const isLeaving = new Set([1047, 1053, 3100, 4094]);

/** Whether an error tells that the server may have changed its part. @param isReadOnly the request was declared so: that it may not write is its own doing */
export function concernsServer(errno: number, isReadOnly: boolean): boolean {
  return isLeaving.has(errno) || (refusesWrites.has(errno) && !isReadOnly);
}

/** Whether the end of a run tells that its server may have changed its role. */
export function endConcernsServer(end: RunEnd, isReadOnly: boolean): boolean {
  const isUnreached = 'reason' in end && end.reason === 'database unreachable';
  const errno = end.kind === 'answered' ? (end.failure?.error.errno ?? 0) : 0;
  return end.kind === 'lost' || isUnreached || concernsServer(errno, isReadOnly);
}
