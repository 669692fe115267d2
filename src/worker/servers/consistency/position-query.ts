// Asks a server for its position behind a statement, in the same write: an upper bound of what the statement saw. docs/explain/consistency.md has the
// ways that do not bound it (gtid_slave_pos, gtid_executed alone, a position asked before).
import type { Connection } from '../../../shared/mysql/connection.ts';
import {
  type GtidSets,
  holdsSets,
  parseSets,
  uniteSets,
} from '../../../shared/servers/gtid-sets.ts';
import { type MariadbEvents, parseEvents, type SeenPosition } from './token.ts';

/** How a kind of server is asked for its position. */
export type PositionQuery = {
  readonly sql: string;
  /** Null: it does not report one. @param before the session's last answer */
  readonly read: (
    row: readonly (string | null)[],
    before: PositionAnswer | null,
  ) => PositionAnswer | null;
};

/** The answer of a server. */
export type PositionAnswer = {
  /** An upper bound of what the statement saw; null: there is none. */
  readonly position: SeenPosition | null;
  /** The session's own transaction, if the statement was one: all that it saw came before it. Null: it was none. */
  readonly ownWrite: SeenPosition | null;
  /** Whether the server has all of a position; null: it cannot say. */
  readonly has: (position: SeenPosition) => boolean | null;
  /** The session's last transaction, as the server reports it. */
  readonly lastOwn: string;
};

/**
 * Without log_slave_updates, the log of a server that has followed another one lacks the events of that one. Only gtid_slave_pos names the last
 * one of each domain, a moment after it is visible.
 */
const createMariadbQuery = (isPrimary: boolean): PositionQuery => ({
  sql: 'SELECT @@global.gtid_binlog_pos, @@global.gtid_binlog_state, @@session.last_gtid, @@global.gtid_slave_pos, @@global.log_slave_updates',
  read: ([log, state, last, replicated, logsReplicated], before) => {
    const events = parseEvents(log ?? '');
    const highest = parseEvents(state ?? '', 'domain and server');
    const applied = parseEvents(replicated ?? '');
    if (events === null || highest === null || applied === null || events.size === 0) return null;
    const isWhole = logsReplicated !== '0' || applied.size === 0;
    const isBound = isWhole || (isPrimary && comesAfter(events, applied));
    const lastOwn = last ?? '';
    const isOwn = lastOwn !== '' && lastOwn !== (before?.lastOwn ?? '');
    // The transaction comes after all that it saw in its own domain. It says nothing of other domains.
    const own = isOwn && isBound && events.size === 1 ? parseEvents(lastOwn) : null;
    const has = (seen: MariadbEvents) =>
      hasEvents(highest, applied, seen) || (isWhole ? false : null);
    return {
      position: isBound ? { kind: 'mariadb', events } : null,
      ownWrite: own === null ? null : { kind: 'mariadb', events: own },
      has: (position) => (position.kind === 'mariadb' ? has(position.events) : null),
      lastOwn,
    };
  },
});
const mariadbPrimary = createMariadbQuery(true);
const mariadbReplica = createMariadbQuery(false);

/** Whether a server has written in each domain since it applied the last event of another one there. */
function comesAfter(own: MariadbEvents, applied: MariadbEvents): boolean {
  return [...applied].every(([domain, { number }]) => (own.get(domain)?.number ?? -1n) > number);
}

/**
 * Compares numbers of the same domain and server: another server's event with the same number proves nothing.
 * @param highest the server's log, by domain and server
 * @param applied the last event of another server in each domain
 */
function hasEvents(highest: MariadbEvents, applied: MariadbEvents, seen: MariadbEvents): boolean {
  return [...seen].every(([domain, { server, number }]) => {
    const logged = highest.get(`${domain}-${server}`)?.number ?? -1n;
    const last = applied.get(domain);
    return logged >= number || (last?.server === server && last.number >= number);
  });
}

/** In this order: an owned transaction is executed a moment later, and would be missed in the other order. */
const mysql: PositionQuery = {
  sql: 'SELECT @@global.gtid_owned, @@global.gtid_executed',
  read: ([ownedText, executedText]) => {
    const [owned, executed] = [parseSets(ownedText ?? ''), parseSets(executedText ?? '')];
    if (owned === null || executed === null || executed.size === 0) return null;
    return {
      position: { kind: 'mysql', executed, owned },
      ownWrite: null,
      has: (position) =>
        position.kind === 'mysql' ? hasSets({ executed, owned }, position) : null,
      lastOwn: '',
    };
  },
};

type MysqlSets = { readonly executed: GtidSets; readonly owned: GtidSets };

/** A transaction that was only owned may be rolled back: its absence proves no loss. */
function hasSets(server: MysqlSets, seen: MysqlSets): boolean | null {
  const all = uniteSets(server.executed, server.owned);
  if (!holdsSets(all, seen.executed)) return false;
  return holdsSets(server.executed, seen.owned) ? true : null;
}

const statusOf = (name: string) => `MAX(IF(VARIABLE_NAME = '${name}', VARIABLE_VALUE, NULL))`;

/**
 * A node of MariaDB. It reports the cluster's UUID and a number that all nodes count alike: WSREP_LAST_SEEN_GTID() would report a GTID of
 * MariaDB's (`0-1-5`, seen on 10.11). A node shows a transaction a moment before it counts it, so a read elsewhere waits for all that the
 * cluster has.
 */
const galeraOfMariadb: PositionQuery = {
  // One query of the status takes 0.3 ms. One for each value took twice as long, and SHOW has two rows.
  sql: `SELECT ${statusOf('WSREP_CLUSTER_STATE_UUID')}, ${statusOf('WSREP_LAST_COMMITTED')}
    FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN ('WSREP_CLUSTER_STATE_UUID', 'WSREP_LAST_COMMITTED')`,
  read: ([cluster, number]) => readGalera(cluster ?? '', number ?? ''),
};

/** A node of MySQL, as in Percona's cluster: `uuid:number`. */
const galeraOfMysql: PositionQuery = {
  sql: 'SELECT WSREP_LAST_SEEN_GTID()',
  read: ([text]) => {
    const [cluster = '', number = ''] = (text ?? '').split(':');
    return readGalera(cluster, number);
  },
};

function readGalera(cluster: string, number: string): PositionAnswer | null {
  if (!/^\d+$/.test(number)) return null;
  const committed = BigInt(number);
  return {
    position: { kind: 'galera', cluster, committed },
    ownWrite: null,
    has: (position) =>
      position.kind === 'galera' && position.cluster === cluster
        ? committed >= position.committed || null
        : null,
    lastOwn: '',
  };
}

/** @param state the server's, as far as it is known */
export function queryFor(
  { flavour }: Connection,
  { isNode, isPrimary }: { readonly isNode: boolean; readonly isPrimary: boolean },
): PositionQuery {
  if (flavour === 'mysql') return isNode ? galeraOfMysql : mysql;
  if (isNode) return galeraOfMariadb;
  return isPrimary ? mariadbPrimary : mariadbReplica;
}
