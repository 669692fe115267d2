// Asks a server what its part is, by what any account may see, and by what grants let it see besides.
// Must not know what follows from the answer.
import { performance } from 'node:perf_hooks';
import { fetchRows, fetchTable, RefusedError, type Table } from '../mysql/commands.ts';
import type { Connection } from '../mysql/connection.ts';
import { fetchIdentity, type ServerIdentity } from '../mysql/identity.ts';
import { type Position, readMariadbPosition, readMysqlPosition } from './position.ts';
import type { Following, GaleraNode, GroupMember, ServerView, Source } from './server-view.ts';

/** The variables that are looked at where a server has them; asked by name, which costs a tenth of a SHOW. */
const wanted = [
  'server_id',
  'server_uuid',
  'read_only',
  'super_read_only',
  'innodb_read_only',
  'gtid_binlog_state',
  'gtid_binlog_pos',
  'gtid_slave_pos',
  'gtid_executed',
  'wsrep_on',
  'wsrep_reject_queries',
  'group_replication_group_name',
  'group_replication_single_primary_mode',
] as const;

type Variable = (typeof wanted)[number];
type Values = ReadonlyMap<Variable, string>;

/** The columns that tell of one server that is followed. */
type SourceColumns = {
  readonly number: string;
  /** MariaDB has no such column. */
  readonly uuid: string;
  readonly host: string;
  readonly port: string;
  readonly isRunning: string;
};

/** How a server tells whom it follows, the first that the account may ask. Null: nothing tells. */
type StatusQuery = {
  readonly sql: string;
  /** Null: the answer has only the number of servers that are followed. */
  readonly columns: SourceColumns | null;
};

/** What can be asked on one connection; a server or its account that changes gets a new one. */
export type Questions = {
  readonly identity: ServerIdentity;
  readonly variables: readonly Variable[];
  readonly status: StatusQuery | null;
  readonly seesGroup: boolean;
};

/** Needs SLAVE MONITOR (MariaDB), REPLICATION CLIENT (MySQL); the last needs nothing, and only MariaDB knows it. */
const formerColumns: SourceColumns = {
  number: 'Master_Server_Id',
  uuid: 'Master_UUID',
  host: 'Master_Host',
  port: 'Master_Port',
  isRunning: 'Slave_IO_Running',
};
/** Since MySQL 8.0.22. */
const newColumns: SourceColumns = {
  number: 'Source_Server_Id',
  uuid: 'Source_UUID',
  host: 'Source_Host',
  port: 'Source_Port',
  isRunning: 'Replica_IO_Running',
};
const mariadbStatus: readonly StatusQuery[] = [
  { sql: 'SHOW ALL SLAVES STATUS', columns: formerColumns },
  { sql: "SHOW GLOBAL STATUS LIKE 'Slaves_running'", columns: null },
];
const mysqlStatus: readonly StatusQuery[] = [
  { sql: 'SHOW REPLICA STATUS', columns: newColumns },
  { sql: 'SHOW SLAVE STATUS', columns: formerColumns },
];
/** Its own state, and how many of the others it hears of: a member without a majority calls itself ONLINE for as long as it is let. */
const memberSql =
  "SELECT MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), SUM(MEMBER_STATE <> 'UNREACHABLE'), COUNT(*) FROM performance_schema.replication_group_members";
/**
 * What a member tells any account, of MySQL 8.1 and later: how many control messages it has sent since it was told to join. The one that it is
 * ONLINE is among them, and comes before it is writable; whose joining failed has sent none, and may be writable.
 */
const takingPartSql = "SHOW GLOBAL STATUS LIKE 'Gr_control_messages_sent_count'";
const galeraSql =
  "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_local_state', 'wsrep_cluster_state_uuid', 'wsrep_last_committed')";

/** What can be asked on this connection. Rejects when it is lost. */
export async function prepareQuestions(connection: Connection): Promise<Questions> {
  const names = wanted.map((name) => `'${name}'`).join();
  const isMariadb = connection.flavour === 'mariadb';
  const [identity, found, status, seesGroup] = await Promise.all([
    fetchIdentity(connection),
    fetchRows(connection, `SHOW GLOBAL VARIABLES WHERE Variable_name IN (${names})`),
    firstAllowed(connection, isMariadb ? mariadbStatus : mysqlStatus),
    isAllowed(connection, memberSql),
  ]);
  const has = new Set(found.map(([name]) => name));
  const variables = wanted.filter((name) => has.has(name));
  return { identity, variables, status, seesGroup };
}

/** Looks at the server, in as many questions as it takes, sent at once. Rejects when the connection is lost. */
export async function askView(connection: Connection, questions: Questions): Promise<ServerView> {
  const askedAt = performance.now();
  const { identity, variables, status, seesGroup } = questions;
  const names = variables.map((name) => `@@global.${name}`).join();
  const asksPart = !seesGroup && variables.includes('group_replication_group_name');
  const [values, rows, galera, member, part] = await Promise.all([
    fetchRows(connection, `SELECT ${names}`).then(([row]) => valuesOf(variables, row ?? [])),
    status === null ? null : fetchTable(connection, status.sql),
    variables.includes('wsrep_on') ? fetchRows(connection, galeraSql) : null,
    seesGroup ? fetchRows(connection, memberSql) : null,
    asksPart ? fetchRows(connection, takingPartSql) : null,
  ]);
  const node = isOn(values.get('wsrep_on')) ? new Map(galera as [string, string][]) : null;
  return {
    identity,
    number: values.get('server_id') ?? '',
    uuid: values.get('server_uuid') ?? null,
    version: `${connection.flavour === 'mariadb' ? 'MariaDB' : 'MySQL'} ${versionOf(connection)}`,
    isReadOnly: readOnlyVariables.some((name) => isOn(values.get(name))),
    following: status === null || rows === null ? { kind: 'unknown' } : followingOf(status, rows),
    position: node === null ? positionOf(values) : galeraPositionOf(node),
    galera: node === null ? null : galeraNodeOf(node, values),
    group: groupOf(values, member?.[0] ?? null, part?.[0] ?? null),
    askedAt,
  };
}

const readOnlyVariables = ['read_only', 'super_read_only', 'innodb_read_only'] as const;

function valuesOf(variables: readonly Variable[], row: readonly (string | null)[]): Values {
  return new Map(variables.map((name, at) => [name, row[at] ?? '']));
}

/** What stands before the first sign that is no number's: `10.11.6-MariaDB-0+deb12u1`, or behind MariaDB's old `5.5.5-`. */
function versionOf({ serverVersion }: Connection): string {
  return serverVersion.replace(/^5\.5\.5-/, '').split('-')[0] ?? serverVersion;
}

function followingOf({ columns: wanted }: StatusQuery, { columns, rows }: Table): Following {
  if (wanted === null) {
    return rows.some(([, running]) => Number(running) > 0)
      ? { kind: 'listed', sources: [] }
      : { kind: 'unknown' };
  }
  const read = (row: readonly (string | null)[], name: string) => row[columns.indexOf(name)] ?? '';
  // What members of a group apply of each other is no following.
  const sources = rows.filter((row) => !read(row, 'Channel_Name').startsWith('group_replication'));
  if (sources.length === 0) return { kind: 'none' };
  const found = sources.map((row) => sourceOf(wanted, (name) => read(row, name)));
  return { kind: 'listed', sources: found };
}

/** The number is 0, and MySQL's uuid empty, until the source has been reached. */
function sourceOf(columns: SourceColumns, read: (name: string) => string): Source {
  const number = read(columns.number);
  const host = read(columns.host);
  return {
    number: number === '' || number === '0' ? null : number,
    uuid: read(columns.uuid) || null,
    address:
      host === '' ? null : `${host.includes(':') ? `[${host}]` : host}:${read(columns.port)}`,
    isConnected: read(columns.isRunning) === 'Yes',
  };
}

function positionOf(values: Values): Position | null {
  const executed = values.get('gtid_executed');
  if (executed !== undefined) return readMysqlPosition(executed);
  return readMariadbPosition({
    binlogState: values.get('gtid_binlog_state') ?? '',
    binlogPos: values.get('gtid_binlog_pos') ?? '',
    slavePos: values.get('gtid_slave_pos') ?? '',
  });
}

function galeraPositionOf(status: ReadonlyMap<string, string>): Position {
  return {
    kind: 'galera',
    cluster: status.get('wsrep_cluster_state_uuid') ?? '',
    committed: BigInt(status.get('wsrep_last_committed') ?? '-1'),
  };
}

function galeraNodeOf(status: ReadonlyMap<string, string>, values: Values): GaleraNode {
  return {
    isReady: isOn(status.get('wsrep_ready')),
    state: Number(status.get('wsrep_local_state')),
    rejectsQueries: (values.get('wsrep_reject_queries') ?? 'NONE') !== 'NONE',
  };
}

function groupOf(
  values: Values,
  told: readonly (string | null)[] | null,
  part: readonly (string | null)[] | null,
): GroupMember | null {
  const name = values.get('group_replication_group_name') ?? '';
  if (name === '') return null;
  const hasSinglePrimary = isOn(values.get('group_replication_single_primary_mode'));
  const [state = null, heard, all] = told ?? [];
  // A server without its performance schema shows no members at all.
  const hasMajority = told === null || all === '0' ? null : 2 * Number(heard) > Number(all);
  const takesPart = part === null ? null : part[1] !== '0';
  return { name, hasSinglePrimary, state, takesPart, hasMajority };
}

function isOn(value: string | undefined): boolean {
  return value === 'ON' || value === '1';
}

async function firstAllowed(
  connection: Connection,
  queries: readonly StatusQuery[],
): Promise<StatusQuery | null> {
  for (const query of queries) if (await isAllowed(connection, query.sql)) return query;
  return null;
}

/** Whether the server knows the question, and the account may ask it. */
async function isAllowed(connection: Connection, sql: string): Promise<boolean> {
  try {
    await fetchRows(connection, sql);
    return true;
  } catch (error) {
    if (error instanceof RefusedError) return false;
    throw error;
  }
}
