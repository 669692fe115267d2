// The table of idempotency keys in --check: its faults, the account's rights on it, and how durable the server's commits are.
import { findTableFaults, type IdempotencyTable } from '../../shared/database/idempotency-table.ts';
import { fetchRows, RefusedError } from '../../shared/mysql/commands.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { quoteAccount } from './grants.ts';

/** One line for each finding. */
export type TableFindings = {
  /** Requests with a key cannot be served. */
  readonly faults: readonly string[];
  /** Requests with a key are served, but a promise is weaker than it could be. */
  readonly warnings: readonly string[];
};

/**
 * Examines the table and writes nothing. Rejects if the connection is lost.
 * @param keepMs how long the section keeps a key
 */
export async function examineTable(
  connection: Connection,
  table: IdempotencyTable,
  keepMs: number,
): Promise<TableFindings> {
  try {
    const faults = await findTableFaults(connection, table);
    const attempts = await tryStatements(connection, table);
    const [[account] = []] = await fetchRows(connection, 'select current_user()');
    const rights = judgeRights(attempts, table, account ?? '', faults.length === 0);
    return {
      faults: [...faults, ...rights.faults],
      warnings: [
        ...rights.warnings,
        ...(await fetchOverdue(connection, table, keepMs)),
        ...(await fetchVolatility(connection)),
      ],
    };
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    const fault = `the server refused a query: ${describe(error)}`;
    return { faults: [fault], warnings: [] };
  }
}

type Refusal = Pick<RefusedError, 'errno' | 'message'>;

function describe({ errno, message }: Refusal): string {
  return `${message} (${errno})`;
}

/** The server's answer to a statement that needs one right. `refusal` null: it would run. */
type Attempt = { readonly right: string; readonly refusal: Refusal | null };

/** EXPLAIN needs the rights of the statement but does not run it. Each needs exactly one right, also under sql_safe_updates. */
function statementsOf({ quoted }: IdempotencyTable): readonly (readonly [string, string])[] {
  return [
    ['SELECT', `EXPLAIN SELECT id, request, attempt, reply, created FROM ${quoted} LIMIT 1`],
    [
      'INSERT',
      `EXPLAIN INSERT INTO ${quoted} (id, request, attempt, created) VALUES ('', '', '', '2000-01-01')`,
    ],
    ['UPDATE', `EXPLAIN UPDATE ${quoted} SET reply = NULL LIMIT 1`],
    ['DELETE', `EXPLAIN DELETE FROM ${quoted} LIMIT 1`],
  ];
}

async function tryStatements(
  connection: Connection,
  table: IdempotencyTable,
): Promise<readonly Attempt[]> {
  const attempts: Attempt[] = [];
  for (const [right, sql] of statementsOf(table)) {
    try {
      await fetchRows(connection, sql);
      attempts.push({ right, refusal: null });
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      attempts.push({ right, refusal: error });
    }
  }
  return attempts;
}

/** ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR. */
const denials: ReadonlySet<number> = new Set([1044, 1142, 1143]);
/** A read-only server or session reports these before it checks rights. */
const readOnly: ReadonlySet<number> = new Set([1290, 1792, 1836]);

/**
 * Finds the missing GRANT and other refusals.
 * @param account as CURRENT_USER() reports it
 * @param isSound whether the table has no fault: a fault is reported already and explains other refusals
 */
export function judgeRights(
  attempts: readonly Attempt[],
  table: IdempotencyTable,
  account: string,
  isSound: boolean,
): TableFindings {
  const missing: string[] = [];
  const unknown: string[] = [];
  const faults: string[] = [];
  for (const { right, refusal } of attempts) {
    if (refusal === null) continue;
    if (denials.has(refusal.errno)) missing.push(right);
    else if (readOnly.has(refusal.errno)) unknown.push(right);
    else if (isSound) faults.push(`${right} is refused: ${describe(refusal)}`);
  }
  const grant = `GRANT ${missing.join(', ')} ON ${table.quoted} TO ${quoteAccount(account)}`;
  if (missing.length > 0) faults.unshift(`the account lacks rights: ${grant}`);
  const warning = `could not find out whether the account has the rights ${unknown.join(', ')}: the server takes no writes`;
  return { faults, warnings: unknown.length === 0 ? [] : [warning] };
}

/** Far more than a gateway needs: it removes a key within a minute after its time. */
const purgedWithinMs = 10 * 60_000;

/** Warns of keys older than `idempotency_keep`: another gateway keeps them longer, or none has run since. */
async function fetchOverdue(
  connection: Connection,
  { quoted }: IdempotencyTable,
  keepMs: number,
): Promise<readonly string[]> {
  const before = new Date(Date.now() - keepMs - purgedWithinMs).toISOString();
  const created = before.slice(0, -1).replace('T', ' ');
  const sql = `SELECT 1 FROM ${quoted} WHERE created < '${created}' LIMIT 1`;
  const rows = await fetchRows(connection, sql).catch((error: unknown) => {
    if (!(error instanceof RefusedError)) throw error;
    return [];
  });
  return rows.length === 0
    ? []
    : [
        `idempotency_table ${quoted} has keys that are older than idempotency_keep: if another gateway keeps them longer, this one removes them anyway`,
      ];
}

const durabilityQuery =
  'select @@global.innodb_flush_log_at_trx_commit, @@global.log_bin, @@global.sync_binlog';

async function fetchVolatility(connection: Connection): Promise<readonly string[]> {
  try {
    const [row = []] = await fetchRows(connection, durabilityQuery);
    return findVolatility(row);
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return [`could not find out how durable the server's commits are: ${describe(error)}`];
  }
}

/** Warns of settings with which a crash may undo acknowledged commits. MariaDB's value 3 writes to disk more often than 1. */
export function findVolatility([flush, isLogged, sync]: readonly (string | null)[]): string[] {
  const consequence =
    'a crash may undo commits that were answered, together with their idempotency keys';
  return [
    ...(flush === '0' || flush === '2'
      ? [`innodb_flush_log_at_trx_commit is ${flush}, not 1: ${consequence}`]
      : []),
    ...(isLogged === '1' && sync !== '1'
      ? [`sync_binlog is ${sync}, not 1, with a binary log: ${consequence}`]
      : []),
  ];
}
