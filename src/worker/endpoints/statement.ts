// What is sent to MySQL for a request: bound, classified, allowed or refused. Pure.
// Must not know the reply, nor how a statement is run.
import type { Config } from '../../shared/settings/config.ts';
import { bind, type Parameters } from '../../shared/sql/bind.ts';
import { classify } from '../../shared/sql/classify.ts';
import type { Escapes } from '../../shared/sql/lexer.ts';
import { shapeOf } from '../../shared/sql/shape.ts';
import { scanStatements } from '../../shared/sql/statements.ts';
import { type Known, TableEffects } from '../catalogue/table-effects.ts';
import type { Statement } from '../execute/preparation.ts';
import { noEffects } from '../execute/statement-effects.ts';
import { type Failure, refusal } from '../reply/failure.ts';
import type { RowModule } from '../reply/row-module.ts';
import type { Home } from '../transactions/held-transactions.ts';
import type { Tokens } from './consistency.ts';

/** What of a section's settings decides about statements. */
export type StatementSettings = Pick<
  Config,
  'multiStatements' | 'readOnly' | 'sessionReset' | 'coalesce'
>;

/** What endpoints that run SQL need of their worker, beside what an exchange does. */
export type SqlContext = {
  /** Null: rows are written one by one. */
  readonly rowModule: RowModule | null;
  /** The section's name as JSON in ASCII, as it stands in replies. */
  readonly sectionJson: string;
  readonly tokens: Tokens;
  /** How long a statement may become by its parameters. */
  readonly mostStatementBytes: () => number;
  /** What is known now of the server's tables and functions. */
  readonly catalogue: () => Known;
  /** Where transactions are held that clients begin. */
  readonly home: Home;
};

/** What a request wants to have run. */
export type StatementWish = {
  readonly sql: string;
  readonly params: Parameters | null;
  /** What the request calls them. */
  readonly paramsKey: 'PARAMS' | 'params';
  readonly readOnly: boolean;
  /** Whether several statements are refused whatever the settings say. */
  readonly isSingle: boolean;
  readonly rollbackOnError: boolean;
  readonly asksServer: boolean;
  /** All that decides what a reply's body is beside the statement and the settings; null: nobody else may have it. */
  readonly format: string | null;
  /** How else than usually the session may read a backslash; missing: in every way that there is. */
  readonly otherEscapes?: readonly Escapes[];
};

/** A statement to run, or why nothing is run. */
export type Decided =
  | { readonly ok: true; readonly statement: Statement }
  | { readonly ok: false; readonly failure: Failure };

/** What is run where a request has no SQL, and only asks the server. */
export const nothingToRun: Statement = {
  sql: null,
  isRead: true,
  effects: noEffects,
  seesOneMoment: true,
  needsFreshSession: false,
  leavesSessionClean: true,
  isReadOnly: false,
  rollbackOnError: false,
  asksServer: true,
  shape: null,
  coalescingKey: null,
};

/** Functions whose answer does not tell that they were ended early. */
const takesTime = /sleep|benchmark/i;

const severalOff = refusal(
  'MULTI_STATEMENTS_OFF',
  'Several statements in one request are switched off here.',
);

const onlyReads = refusal(
  'READ_ONLY',
  'Only a single statement that reads, and does nothing else, is allowed here.',
);

const notRecognised = refusal(
  'READ_ONLY',
  'The statement is not recognised. Only a single statement that is known to read, and to do nothing else, is allowed here.',
);

/**
 * What is sent to MySQL for a request, and how; or why nothing is.
 * @param mostBytes how long the statement may become by its parameters
 * @param catalogue what is known of the server's tables and functions
 */
export function decideStatement(
  config: StatementSettings,
  wish: StatementWish,
  mostBytes: number,
  catalogue: Known,
): Decided {
  const { params, paramsKey, rollbackOnError, asksServer, format } = wish;
  const bound =
    params === null
      ? ({ ok: true, sql: wish.sql } as const)
      : bind(wish.sql, params, mostBytes, paramsKey);
  if (!bound.ok) {
    if (wish.isSingle && bound.failure.code === 'PARAMS_SEVERAL') {
      return { ok: false, failure: severalStatements(wish.sql) };
    }
    const { code, message, offset } = bound.failure;
    return {
      ok: false,
      failure: { ...refusal(code, message), ...(offset !== null && { place: { offset } }) },
    };
  }
  const { sql } = bound;
  const classified = classify(sql, catalogue.builtIns, wish.otherEscapes);
  const { kind, single, readOnlyAllowed, readsEarlierSession, leavesSessionClean } = classified;
  if (!single && wish.isSingle) return { ok: false, failure: severalStatements(sql) };
  if (!single && !config.multiStatements) return { ok: false, failure: severalOff };
  const isReadOnly = config.readOnly || wish.readOnly;
  if (isReadOnly && !readOnlyAllowed) {
    return { ok: false, failure: classified.isRecognised ? onlyReads : notRecognised };
  }
  const isRead = kind === 'read';
  const isClean = leavesSessionClean && config.sessionReset === 'auto';
  // What is not allowed in a READ ONLY transaction would be refused in the pipeline.
  const maySharePlace =
    isRead &&
    isClean &&
    format !== null &&
    readOnlyAllowed &&
    !readsEarlierSession &&
    !isReadOnly &&
    !takesTime.test(sql);
  const mayShareReply = config.coalesce && classified.repeatable && format !== null;
  return {
    ok: true,
    statement: {
      sql,
      isRead,
      effects: new TableEffects(catalogue, classified),
      seesOneMoment: isRead && readOnlyAllowed,
      needsFreshSession: readsEarlierSession,
      leavesSessionClean: isClean,
      isReadOnly,
      rollbackOnError,
      asksServer,
      shape: maySharePlace ? shapeOf(sql) : null,
      coalescingKey: mayShareReply
        ? `${isReadOnly ? 'read-only' : 'plain'} ${format} ${sql}`
        : null,
    },
  };
}

function severalStatements(sql: string): Failure {
  const offset = scanStatements(sql)[1]?.start ?? sql.length;
  const message = `One statement at a time: a second one begins at character ${offset}. Several go to /v1/batch.`;
  return { ...refusal('SEVERAL_STATEMENTS', message), place: { offset } };
}
