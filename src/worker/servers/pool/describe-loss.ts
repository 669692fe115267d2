// Why a connection is gone, or an answer was none, in words that may stand in a log.
// Must not know who tells it: it never holds SQL, a value or a server's own sentence.
import { RefusedError } from '../../../shared/mysql/commands.ts';
import { ServerFault } from '../../../shared/mysql/server-fault.ts';
import { whereThrown } from '../../../shared/process/log.ts';

/**
 * Our own words are told, a system's error by its code; what was thrown at an answer by its place. A refusal's words may
 * quote the statement: its number says enough.
 */
export function describeLoss(reason: unknown): string {
  if (reason instanceof RefusedError) return `errno ${reason.errno}`;
  if (!(reason instanceof Error)) return String(reason);
  const isForeign = 'code' in reason && !(reason instanceof ServerFault);
  const told = isForeign ? String(reason.code) : reason.message;
  const { cause } = reason;
  if (cause === undefined) return told;
  return `${told} (${cause instanceof RefusedError ? describeLoss(cause) : whereThrown(cause)})`;
}
