// Asks a server for its view: what any account may see of its role, and what grants show besides.
import { performance } from 'node:perf_hooks';
import { fetchRows, fetchTable, RefusedError, type Table } from '../mysql/commands.ts';
import type { Connection } from '../mysql/connection.ts';
import { fetchIdentity, type ServerIdentity } from '../mysql/identity.ts';
import { type Position, readMariadbPosition, readMysqlPosition } from './position.ts';
import type { Following, GaleraNode, GroupMember, ServerView, Source } from './server-view.ts';

/** The variables that are read if a server has them. Asking by name costs a tenth of a SHOW. */
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

/** The columns that describe one source. */
type SourceColumns = {
  readonly number: string;
  /** MariaDB has no such column. */
  readonly uuid: string;
  readonly host: string;
  readonly port: string;
  readonly isRunning: string;
};

/** A query for the servers that a server follows. */
type StatusQuery = {
  readonly sql: string;
  /** Null: the answer has only the number of sources. */
  readonly columns: SourceColumns | null;
};

/** The questions that one connection allows. If the server or its account changes, a new connection asks again. */
export type Questions = {
  readonly identity: ServerIdentity;
  readonly variables: readonly Variable[];
  readonly status: StatusQuery | null;
  readonly seesGroup: boolean;
};

/** SHOW ALL SLAVES STATUS needs SLAVE MONITOR (MariaDB), SHOW SLAVE STATUS needs REPLICATION CLIENT (MySQL), Slaves_running no grant. */
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
/** A member's state, and how many members it is in contact with: a member without a majority still calls itself ONLINE. */
const memberSql =
  "SELECT MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), SUM(MEMBER_STATE <> 'UNREACHABLE'), COUNT(*) FROM performance_schema.replication_group_members";
/**
 * How many control messages a member has sent since it began to join; any account of MySQL 8.1 and later may see that. A member that is ONLINE
 * has sent one before it becomes writable. A server that failed to join has sent none, and may be writable.
 */
const takingPartSql = "SHOW GLOBAL STATUS LIKE 'Gr_control_messages_sent_count'";
const galeraSql =
  "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_local_state', 'wsrep_cluster_state_uuid', 'wsrep_last_committed')";

/** Finds out what can be asked on this connection. Rejects if it is lost. */
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

/** Probes the server; all queries are sent at once. Rejects if the connection is lost. */
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

/** The number of a version such as `10.11.6-MariaDB-0+deb12u1`, also behind MariaDB's old prefix `5.5.5-`. */
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
  // Members of a group apply each other's writes by channels of these names.
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
  member: readonly (string | null)[] | null,
  part: readonly (string | null)[] | null,
): GroupMember | null {
  const name = values.get('group_replication_group_name') ?? '';
  if (name === '') return null;
  const hasSinglePrimary = isOn(values.get('group_replication_single_primary_mode'));
  const [state = null, heard, all] = member ?? [];
  // A server without its performance schema shows no members.
  const hasMajority = member === null || all === '0' ? null : 2 * Number(heard) > Number(all);
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

/** Whether the server knows the query, and the account may run it. */
async function isAllowed(connection: Connection, sql: string): Promise<boolean> {
  try {
    await fetchRows(connection, sql);
    return true;
  } catch (error) {
    if (error instanceof RefusedError) return false;
    throw error;
  }
}
