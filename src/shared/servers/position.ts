// A position is how far a server's history goes. Reads and compares positions. Pure.
import { formatSets, type GtidSets, holdsSets, parseSets } from './gtid-sets.ts';

/**
 * A server's history, as its kind reports it. Sequence numbers alone prove nothing: two servers that were both written to
 * have the same ones.
 */
export type Position =
  /** For each domain and server, its highest number (gtid_binlog_state, gtid_slave_pos). */
  | { readonly kind: 'mariadb'; readonly highest: ReadonlyMap<string, bigint>; readonly last: Last }
  /** For each source, its numbers (gtid_executed). */
  | { readonly kind: 'mysql'; readonly sets: GtidSets }
  /** For one cluster, the number that was committed last. */
  | { readonly kind: 'galera'; readonly cluster: string; readonly committed: bigint };

/** For each domain, its last event. */
type Last = ReadonlyMap<string, { readonly server: string; readonly number: bigint }>;

/** The values of MariaDB's variables of these names. */
export type MariadbPositions = {
  readonly binlogState: string;
  readonly binlogPos: string;
  readonly slavePos: string;
};

/** Reads MariaDB's position; null: nothing was ever written to its log, or replicated. */
export function readMariadbPosition(texts: MariadbPositions): Position | null {
  const highest = new Map<string, bigint>();
  for (const { domain, server, number } of [texts.binlogState, texts.slavePos].flatMap(gtidsOf)) {
    const key = `${domain}-${server}`;
    if (number > (highest.get(key) ?? -1n)) highest.set(key, number);
  }
  const last = new Map(
    [texts.slavePos, texts.binlogPos]
      .flatMap(gtidsOf)
      .map(({ domain, ...event }) => [domain, event] as const),
  );
  return highest.size === 0 ? null : { kind: 'mariadb', highest, last };
}

/** MariaDB's manual, "Global Transaction ID": domain-server-number, comma-separated. */
function gtidsOf(text: string) {
  return text
    .split(',')
    .map((gtid) => /^\s*(\d+)-(\d+)-(\d+)\s*$/.exec(gtid))
    .flatMap((found) =>
      found === null
        ? []
        : [{ domain: `${found[1]}`, server: `${found[2]}`, number: BigInt(`${found[3]}`) }],
    );
}

/** Reads gtid_executed; null: it is empty, or no such set. */
export function readMysqlPosition(text: string): Position | null {
  const sets = parseSets(text);
  return sets === null || sets.size === 0 ? null : { kind: 'mysql', sets };
}

/**
 * A position as text, to be compared later. A position of MariaDB loses which event came last in each domain. Null: a cluster keeps its own
 * history, which is never stored.
 */
export function formatPosition(position: Position): string | null {
  if (position.kind === 'mysql') return formatSets(position.sets);
  if (position.kind === 'galera') return null;
  return [...position.highest].map(([key, number]) => `${key}-${number}`).join();
}

/** Reads what `formatPosition` has written; null: it is no such text. */
export function parsePosition(text: string): Position | null {
  const gtids = text.split(',');
  if (!gtids.every((gtid) => /^\d+-\d+-\d+$/.test(gtid))) return readMysqlPosition(text);
  return readMariadbPosition({ binlogState: text, binlogPos: '', slavePos: '' });
}

/** Whether `one` has everything that `other` has; null: they are of different kinds, and cannot be compared. */
export function hasAllOf(one: Position, other: Position): boolean | null {
  if (one.kind === 'mariadb' && other.kind === 'mariadb') {
    return [...other.highest].every(([key, number]) => (one.highest.get(key) ?? -1n) >= number);
  }
  if (one.kind === 'mysql' && other.kind === 'mysql') return holdsSets(one.sets, other.sets);
  if (one.kind === 'galera' && other.kind === 'galera') {
    return one.cluster === other.cluster ? one.committed >= other.committed : null;
  }
  return null;
}

/**
 * Whether a replica has reached a position of its source; null: they cannot be compared. A replica without its own log reports only the last
 * event of each domain.
 */
export function hasReached(replica: Position, source: Position): boolean | null {
  if (replica.kind !== 'mariadb' || source.kind !== 'mariadb') return hasAllOf(replica, source);
  return [...source.last].every(([domain, { server, number }]) => {
    const own = replica.highest.get(`${domain}-${server}`);
    const last = replica.last.get(domain);
    return (own !== undefined && own >= number) || (last !== undefined && last.number >= number);
  });
}

/** The server_id of the server whose event came last in every domain; null: there is none, or it is not reported. */
export function lastWriter(position: Position): string | null {
  if (position.kind !== 'mariadb') return null;
  const servers = new Set([...position.last.values()].map(({ server }) => server));
  return servers.size === 1 ? ([...servers][0] ?? null) : null;
}
