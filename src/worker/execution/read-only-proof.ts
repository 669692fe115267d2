// Checks that a read-only statement calls nothing that a READ ONLY transaction would not stop. It asks the server for the stored routines
// and the views that the statement reaches, on the session that will run it.
import { RefusedError, readRows } from '../../shared/mysql/commands.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { analyse } from '../../shared/sql/analyse.ts';
import { encodeLiteral } from '../../shared/sql/literal.ts';
import { type Reach, reachOfRoutine, reachOfStatement } from '../../shared/sql/routines.ts';
import type { TableName } from '../../shared/sql/table-names.ts';
import { type BuiltIns, builtInsOf } from '../../shared/sql/vocabulary.ts';
import type { StatementEffects } from './statement-effects.ts';

/** Why a read-only statement is not run. */
export type ReadOnlyDoubt = {
  /**
   * `acts`: the routine does something that READ ONLY does not stop, or may do so. `hidden routine`, `hidden view`: the account may not
   * see its text. `unclear`: it could not be found out what the statement reaches.
   */
  readonly kind: 'acts' | 'hidden routine' | 'hidden view' | 'unclear';
  /** The name of the routine or view; '' if `unclear`. */
  readonly name: string;
  readonly flavour: 'mariadb' | 'mysql';
};

/** Names that remain to be checked, and the schema of those without one; null: the session's. */
type Open = Reach & { readonly home: string | null; readonly isDefiner: boolean };
type Doubt = Pick<ReadOnlyDoubt, 'kind' | 'name'>;

/** A view of views of functions …: beyond this depth, or this many names at once, the answer is `unclear`. */
const maxRounds = 16;
const maxNames = 1_000;
/** Longer than a name may be. */
const maxLiteralBytes = 1024;
/** Bodies and definitions of one round. */
const maxBytes = 64 * 1024 * 1024;
/** Only the server's owner can add to these schemas, and what their views call is known. */
const trustedSchemas = new Set(['sys', 'information_schema', 'performance_schema', 'mysql']);
const unclear: Doubt = { kind: 'unclear', name: '' };

/** Whether the server must be asked. A read of base tables, and of views that call only built-in functions, needs no question. */
export function needsProof(effects: StatementEffects): boolean {
  return effects.hasUnknownCall || !effects.isHarmless();
}

/**
 * Why a read-only statement must not be run; null: all that it reaches is harmless, or the server refuses it. Changes FOUND_ROWS() of
 * the session. Rejects when the connection is lost.
 */
export async function findReadOnlyDoubt(
  connection: Connection,
  sql: string,
  { tables }: StatementEffects,
): Promise<ReadOnlyDoubt | null> {
  const { flavour, serverVersion } = connection;
  const builtIns = builtInsOf(flavour, serverVersion);
  const reach = reachOfStatement(sql, builtIns);
  if (reach === null) return { ...unclear, flavour };
  const names = tables ?? reach.names;
  const first = { ...reach, names, home: null, isDefiner: false };
  try {
    const doubt = await followAll(connection, first, builtIns);
    return doubt === null ? null : { ...doubt, flavour };
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return { ...unclear, flavour };
  }
}

async function followAll(
  connection: Connection,
  first: Open,
  builtIns: BuiltIns,
): Promise<Doubt | null> {
  const seen = new Set<string>();
  let open: readonly Open[] = [first];
  for (let round = 0; open.length > 0; round += 1) {
    const count = open.reduce((sum, { calls, names }) => sum + calls.length + names.length, 0);
    if (round === maxRounds || count > maxNames) return unclear;
    const [routines, views] = await Promise.all([
      fetchRoutines(connection, open),
      fetchViews(connection, open),
    ]);
    if (routines === null || views === null) return unclear;
    const hidden = findHiddenCall(open, routines);
    if (hidden !== null) return { kind: 'hidden routine', name: hidden };
    const next: Open[] = [];
    for (const object of [...routines, ...views]) {
      if (seen.has(object.key)) continue;
      seen.add(object.key);
      const found = object.reach(builtIns);
      if ('kind' in found) return found;
      next.push({ ...found, home: object.schema, isDefiner: true });
    }
    open = next;
  }
  return null;
}

/** A routine or a view as the server shows it. */
type StoredText = {
  readonly key: string;
  readonly schema: string;
  readonly name: string;
  readonly reach: (builtIns: BuiltIns) => Reach | Doubt;
};

/** Null: one of the names cannot be asked for. */
async function fetchRoutines(
  connection: Connection,
  open: readonly Open[],
): Promise<readonly StoredText[] | null> {
  const conditions = open.flatMap(({ calls, home }) =>
    calls.map((parts) => {
      const names = parts.map(literal);
      const schemas = [...names, home === null ? 'DATABASE()' : literal(home)];
      return schemas.includes(null)
        ? null
        : `ROUTINE_NAME IN (${names}) AND ROUTINE_SCHEMA IN (${schemas})`;
    }),
  );
  if (conditions.includes(null)) return null;
  if (conditions.length === 0) return [];
  const found: StoredText[] = [];
  const sql = `SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE, ROUTINE_DEFINITION, ROUTINE_BODY, SQL_MODE
    FROM information_schema.ROUTINES WHERE (${[...new Set(conditions)].join(') OR (')})`;
  await readRows(connection, sql, maxBytes, (cells) => found.push(routineOf(cells)));
  return found;
}

function routineOf(cells: readonly (string | null)[]): StoredText {
  const [schema = '', name = '', type = '', body = '', language = '', mode = ''] = cells.map(
    (cell) => cell ?? '',
  );
  const reach = (builtIns: BuiltIns): Reach | Doubt => {
    if (body === '') return { kind: 'hidden routine', name };
    const found = language === 'SQL' ? reachOfRoutine(body, mode, builtIns) : null;
    return found ?? { kind: 'acts', name };
  };
  return { key: `${type} ${schema}.${name}`, schema, name, reach };
}

async function fetchViews(
  connection: Connection,
  open: readonly Open[],
): Promise<readonly StoredText[] | null> {
  const selects = open.flatMap(({ names, home }) =>
    names
      .filter(({ schema }) => !trustedSchemas.has(schema?.toLowerCase() ?? ''))
      .map((name) => selectView(name, home)),
  );
  if (selects.includes(null)) return null;
  if (selects.length === 0) return [];
  const found: StoredText[] = [];
  const sql = [...new Set(selects)].join(' UNION ALL ');
  await readRows(connection, sql, maxBytes, ([schema, name, definition]) =>
    found.push(viewOf(schema ?? '', name ?? '', definition ?? '')),
  );
  return found;
}

/** One SELECT for each view: a server finds a view by its schema and name, but opens all of them for a list. */
function selectView({ schema, name }: TableName, home: string | null): string | null {
  const own = schema ?? home;
  const [place, view] = [own === null ? 'DATABASE()' : literal(own), literal(name)];
  return place === null || view === null
    ? null
    : `SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ${place} AND TABLE_NAME = ${view}`;
}

function viewOf(schema: string, name: string, definition: string): StoredText {
  const reach = (builtIns: BuiltIns): Reach | Doubt => {
    if (definition === '') return { kind: 'hidden view', name };
    const { readOnlyAllowed, tables } = analyse(definition, builtIns).classification;
    const found = readOnlyAllowed ? reachOfStatement(definition, builtIns) : null;
    return found === null ? { kind: 'acts', name } : { ...found, names: tables ?? found.names };
  };
  return { key: `VIEW ${schema}.${name}`, schema, name, reach };
}

/**
 * A routine that a view or another routine calls, and that the account may not see: only a stored routine has a schema before its name.
 * The server refuses a statement that calls a routine which the account may not see.
 */
function findHiddenCall(open: readonly Open[], routines: readonly StoredText[]): string | null {
  const known = new Set(routines.map(({ name }) => name.toLowerCase()));
  for (const { calls, isDefiner } of open) {
    const hidden = calls.find(
      (parts) =>
        isDefiner && parts.length > 1 && !parts.some((part) => known.has(part.toLowerCase())),
    );
    if (hidden !== undefined) return hidden.at(-1) ?? '';
  }
  return null;
}

/** A plain literal if possible: the server uses its index of views only for literals of its own character set. */
function literal(name: string): string | null {
  if (/^[\w$ -]+$/.test(name)) return `'${name}'`;
  const encoded = encodeLiteral(name, maxLiteralBytes);
  return encoded.ok ? encoded.sql : null;
}
