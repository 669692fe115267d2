// The values of ENUM columns, which named statements take as parameters (`enum of orders.status`).
import { fetchRows } from '../mysql/commands.ts';
import type { Connection } from '../mysql/connection.ts';
import type { EnumValues } from '../named/scalar.ts';
import type { NamedStatement, ParameterType } from '../named/statement.ts';
import { encodeLiteral } from '../sql/literal.ts';

/** A column of the connection's database, as a statement names it. */
export type EnumColumn = { readonly table: string; readonly column: string };

/** The server's answer about a column. */
export type EnumAnswer =
  | { readonly kind: 'values'; readonly values: ReadonlySet<string> }
  | { readonly kind: 'no table' }
  | { readonly kind: 'no column' }
  | { readonly kind: 'no enum'; readonly type: string };

/** The server's answers about all columns that were asked for. */
export class EnumAnswers {
  readonly #answers: ReadonlyMap<string, EnumAnswer>;

  constructor(answers: readonly (readonly [EnumColumn, EnumAnswer])[] = []) {
    this.#answers = new Map(answers.map(([column, answer]) => [keyOf(column), answer]));
  }

  /** Undefined: the column was not asked for. */
  find(column: EnumColumn): EnumAnswer | undefined {
    return this.#answers.get(keyOf(column));
  }

  /** Null: they are not known. */
  readonly valuesOf: EnumValues = (table, column) => {
    const answer = this.find({ table, column });
    return answer?.kind === 'values' ? answer.values : null;
  };
}

/** Names contain no line feed. */
function keyOf({ table, column }: EnumColumn): string {
  return `${table}\n${column}`;
}

/** The ENUM columns of a parameter's type. */
export function listEnumColumns(type: ParameterType): readonly EnumColumn[] {
  if (type.kind === 'enum of') return [{ table: type.table, column: type.column }];
  if (type.kind === 'list') return listEnumColumns(type.of);
  if (type.kind === 'records') return type.fields.flatMap((field) => listEnumColumns(field.type));
  return [];
}

/**
 * Asks for the values of all ENUM columns that the statements name. Sends nothing if there are none. Rejects if the connection is lost or
 * the server refuses.
 */
export async function fetchEnumAnswers(
  connection: Connection,
  statements: readonly Pick<NamedStatement, 'parameters'>[],
): Promise<EnumAnswers> {
  const wanted = statements.flatMap(({ parameters }) =>
    parameters.flatMap(({ type }) => listEnumColumns(type)),
  );
  if (wanted.length === 0) return new EnumAnswers();
  const tables = [...new Set(wanted.map(({ table }) => table))].map(literalOf).join(', ');
  const [[rules] = []] = await fetchRows(connection, 'SELECT @@lower_case_table_names');
  const rows = await fetchRows(
    connection,
    `SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS
      WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (${tables})`,
  );
  const fold = (table: string) => (rules === '0' ? table : table.toLowerCase());
  const known = new Map<string, Map<string, string>>();
  for (const [table, column, type] of rows) {
    const columns = known.get(fold(table ?? '')) ?? new Map<string, string>();
    columns.set((column ?? '').toLowerCase(), type ?? '');
    known.set(fold(table ?? ''), columns);
  }
  return new EnumAnswers(
    wanted.map((one) => [one, answerOf(known.get(fold(one.table)), one.column)]),
  );
}

function literalOf(text: string): string {
  const literal = encodeLiteral(text, Number.POSITIVE_INFINITY);
  if (!literal.ok) throw new Error('a name of a table has passed the parser, and is no text');
  return literal.sql;
}

function answerOf(columns: ReadonlyMap<string, string> | undefined, column: string): EnumAnswer {
  if (columns === undefined) return { kind: 'no table' };
  const type = columns.get(column.toLowerCase());
  if (type === undefined) return { kind: 'no column' };
  const values = parseEnumType(type);
  return values === null ? { kind: 'no enum', type } : { kind: 'values', values };
}

/** How COLUMN_TYPE writes characters, whatever the sql_mode is (`append_unescaped` of both servers). */
const escaped: Readonly<Record<string, string>> = { '0': '\0', n: '\n', r: '\r', '\\': '\\' };

/** Parses `enum('open','it''s')` of COLUMN_TYPE; null: it is another type. */
export function parseEnumType(type: string): ReadonlySet<string> | null {
  const list = /^enum\((.*)\)$/is.exec(type)?.[1];
  if (list === undefined) return null;
  const values = new Set<string>();
  for (const [, quoted = ''] of list.matchAll(/'((?:[^']|'')*)'/gs)) {
    values.add(
      quoted
        .replaceAll("''", "'")
        .replaceAll(/\\([0nr\\])/g, (_whole, letter: string) => escaped[letter] ?? letter),
    );
  }
  return values;
}
