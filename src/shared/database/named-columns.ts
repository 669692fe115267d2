// The columns of named statements, as their server describes them: it prepares every variant of each SQL statement and runs none.
import { type ColumnDescription, describeColumn } from '../mysql/column-types.ts';
import type { Connection } from '../mysql/connection.ts';
import type { Column, ServerError } from '../mysql/packets.ts';
import { closePrepared, type Prepared, prepare } from '../mysql/prepare.ts';
import { listProbes, type Probe } from '../named/probes.ts';
import type { EnumValues } from '../named/scalar.ts';
import type { NamedStatement, Part } from '../named/statement.ts';
import {
  type Catalogue,
  type Doubts,
  fetchCatalogue,
  findDoubts,
  isCertain,
} from './nullability.ts';

/** A column of a statement's rows, as replies of /v1 describe it. */
export type NamedColumn = Omit<ColumnDescription, 'type'> & {
  /** Null: the type depends on the values of the parameters. */
  readonly type: string | null;
  /** Whether the name depends on those values, too. Missing: it does not. */
  readonly nameVaries?: true;
};

/** A problem and its line in the file, from 1. */
export type LineProblem = { readonly line: number; readonly problem: string };

/** The server's answer about a statement. */
export type DescribedStatement = {
  /** The columns of each part. Null: it has none, or they show only when it runs. */
  readonly parts: readonly (readonly NamedColumn[] | null)[];
  /** Those of the part whose rows are the reply. */
  readonly answer: readonly NamedColumn[] | null;
  /** Why calls would fail. */
  readonly faults: readonly LineProblem[];
  readonly warnings: readonly LineProblem[];
};

/** The number of statements about which a server is asked at once. */
const statementsAtOnce = 16;

/**
 * Asks a server about statements, in their order. Leaves no prepared statement, but perhaps an error for SHOW WARNINGS. Rejects if the
 * connection is lost.
 * @param enumValues the values of ENUM columns, as far as they are known
 */
export async function describeStatements(
  connection: Connection,
  statements: readonly NamedStatement[],
  enumValues: EnumValues,
): Promise<readonly DescribedStatement[]> {
  const described: DescribedStatement[] = [];
  if (statements.length === 0) return described;
  const catalogue = await fetchCatalogue(connection);
  for (let from = 0; from < statements.length; from += statementsAtOnce) {
    const ids: number[] = [];
    const ask = async (sql: string) => {
      const prepared = await prepare(connection, sql);
      if (prepared.ok) ids.push(prepared.id);
      return prepared;
    };
    const some = statements.slice(from, from + statementsAtOnce);
    described.push(
      ...(await Promise.all(
        some.map((statement) => describeStatement(statement, enumValues, catalogue, ask)),
      )),
    );
    if (ids.length > 0) await closePrepared(connection, ids);
  }
  return described;
}

type Ask = (sql: string) => Promise<Prepared>;

/** The server's answers about one part. */
type AskedPart = {
  readonly part: Part;
  /** One list for each text that it accepts. */
  readonly results: readonly (readonly Column[])[];
  /** Null: the server accepts all variants. */
  readonly refusal: { readonly error: ServerError; readonly choices: string } | null;
};

async function describeStatement(
  statement: NamedStatement,
  enumValues: EnumValues,
  catalogue: Catalogue,
  ask: Ask,
): Promise<DescribedStatement> {
  const { parameters, notNullColumns, name, line } = statement;
  const asked = await Promise.all(
    statement.parts.map((part) => askAbout(part, listProbes(part, parameters, enumValues), ask)),
  );
  const faults: LineProblem[] = [];
  const warnings: LineProblem[] = [];
  const parts = asked.map(({ part, results, refusal }) => {
    if (refusal !== null) faults.push(describeRefusal(name, part, refusal.error, refusal.choices));
    const doubts = findDoubts(part.sql, catalogue);
    const columns = mergeResults(results, doubts, part.isAnswer ? notNullColumns : []);
    if (columns === null || refusal !== null) return null;
    const isRead = part.isAnswer || part.step !== null;
    for (const twice of isRead ? findTwice(columns) : []) {
      const problem = `\`${name}\`: two columns are named \`${twice}\`, and rows are objects: rename one by AS`;
      faults.push({ line: part.line, problem });
    }
    const varying = findVarying(results);
    for (const at of isRead ? varying : []) {
      const problem = `\`${name}\`: the name of column ${at + 1} depends on the values: name it by AS`;
      warnings.push({ line: part.line, problem });
    }
    return columns.map(
      (column, at): NamedColumn =>
        varying.includes(at) ? { ...column, nameVaries: true } : column,
    );
  });
  const answer = parts[statement.parts.findIndex(({ isAnswer }) => isAnswer)] ?? null;
  for (const column of answer === null ? [] : notNullColumns) {
    if (answer?.some((one) => one.name === column)) continue;
    const problem = `\`-- column ${column}: not null\` of \`${name}\`: the answer has no such column`;
    faults.push({ line, problem });
  }
  return { parts, answer, faults, warnings };
}

/**
 * The server refuses to prepare such statements, or could not do so at this moment: not supported there, to be prepared again, too many, a
 * lock, a time limit.
 */
const excused: ReadonlySet<number> = new Set([1205, 1213, 1295, 1317, 1461, 1615, 1969, 3024]);

async function askAbout(part: Part, probes: readonly Probe[], ask: Ask): Promise<AskedPart> {
  const answers = await Promise.all(
    probes.map(async ({ marked, texts, choices }) => {
      // In the order of sending: what is asked first is the most likely to succeed.
      const [first, ...others] = await Promise.all(texts.map(ask));
      const columns = [first, ...others].flatMap((one) => (one?.ok ? [one.columns] : []));
      if (first === undefined || first.ok) return { choices, columns, error: null };
      const again = await ask(marked);
      // A server evaluates constants while it prepares: the sample may be wrong for it, and the statement good.
      if (again.ok) return { choices, columns: [again.columns], error: null };
      const isSame = again.error.errno === first.error.errno;
      return { choices, columns: [], error: isSame ? again.error : first.error };
    }),
  );
  const refused = answers.filter(({ error }) => error !== null && !excused.has(error.errno));
  const [first] = refused;
  const isAlways = refused.length === answers.length;
  return {
    part,
    results: answers.flatMap(({ columns }) => columns),
    refusal:
      first === undefined || first.error === null
        ? null
        : { error: first.error, choices: isAlways ? '' : first.choices },
  };
}

/** The server counts lines from the beginning of the statement. */
function describeRefusal(
  name: string,
  part: Part,
  { errno, message }: ServerError,
  choices: string,
): LineProblem {
  const [end = '', line] = / at line (\d+)$/.exec(message) ?? [];
  const text = message.slice(0, message.length - end.length);
  const where = choices === '' ? '' : ` (${choices})`;
  return {
    line: part.line + (line === undefined ? 0 : Number(line) - 1),
    problem: `\`${name}\`${where} is refused by the server: ${text} (${errno})`,
  };
}

/** Null: there are no columns, or their number depends on the choices. */
function mergeResults(
  results: readonly (readonly Column[])[],
  doubts: Doubts,
  notNull: readonly string[],
): readonly NamedColumn[] | null {
  const [first = [], ...others] = results;
  if (first.length === 0 || others.some(({ length }) => length !== first.length)) return null;
  return first.map((column, at) => {
    const merged = others.reduce<NamedColumn>(
      (known, result) => mergeColumns(known, describe(result[at] as Column, doubts)),
      describe(column, doubts),
    );
    return notNull.includes(merged.name) ? { ...merged, nullable: false } : merged;
  });
}

function describe(column: Column, doubts: Doubts): NamedColumn {
  const description = describeColumn(column);
  return { ...description, nullable: description.nullable || !isCertain(column, doubts) };
}

/** One column, by two texts of the same statement. */
function mergeColumns(one: NamedColumn, other: NamedColumn): NamedColumn {
  if (other.type === 'NULL') return { ...one, nullable: true };
  if (one.type === 'NULL') return { ...other, name: one.name, nullable: true };
  const { name } = one;
  const nullable = one.nullable || other.nullable;
  if (one.type !== other.type || one.encoding !== other.encoding) {
    return { name, type: null, nullable };
  }
  const { precision: first, scale, ...rest } = one;
  const { precision: second } = other;
  const isFixed = first !== undefined && second !== undefined && scale === other.scale;
  return {
    ...rest,
    nullable,
    ...(isFixed && scale !== undefined ? { precision: Math.max(first, second), scale } : {}),
    ...(one.unsigned === undefined ? {} : { unsigned: one.unsigned && other.unsigned === true }),
  };
}

function findTwice(columns: readonly NamedColumn[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const { name } of columns) {
    if (seen.has(name)) twice.add(name);
    seen.add(name);
  }
  return twice;
}

/** The indexes of the columns whose names are not the same in all results. */
function findVarying([first = [], ...others]: readonly (readonly Column[])[]): readonly number[] {
  return [...first.keys()].filter((at) =>
    others.some((result) => result[at]?.name.equals(first[at]?.name ?? Buffer.alloc(0)) === false),
  );
}
