// Whether a server's history, as it was looked at last, has all that a client has seen. Pure.
import { holdsSets } from '../../../shared/servers/gtid-sets.ts';
import type { Position } from '../../../shared/servers/position.ts';
import type { SeenPosition } from './token.ts';

/**
 * True only if it is certain that the server has it: it may still have to be waited for until it shows it. @param position the server's; null:
 * it has none, or does not tell
 */
export function covers(position: Position | null, seen: SeenPosition): boolean {
  if (position === null) return false;
  switch (seen.kind) {
    case 'mariadb':
      // A foreign server's event with the same number proves nothing.
      return (
        position.kind === 'mariadb' &&
        [...seen.events].every(
          ([domain, { server, number }]) =>
            (position.highest.get(`${domain}-${server}`) ?? -1n) >= number,
        )
      );
    case 'mysql':
      return (
        position.kind === 'mysql' &&
        holdsSets(position.sets, seen.executed) &&
        holdsSets(position.sets, seen.owned)
      );
    case 'galera':
      return (
        position.kind === 'galera' &&
        position.cluster === seen.cluster &&
        position.committed >= seen.committed
      );
    default:
      return seen satisfies never;
  }
}
