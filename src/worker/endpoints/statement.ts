// Decides how a text runs: binds its values, analyses it, and allows or refuses it. Pure.
import type { Caller } from '../../shared/clients/caller.ts';
import { isAllowed } from '../../shared/clients/client.ts';
import type { Config } from '../../shared/config/config.ts';
import { longFrom, type Pieces } from '../../shared/pieces.ts';
import { type Analysis, analyseInPieces, isKnownVerb } from '../../shared/sql/analyse.ts';
import { type BindFailure, bindInPieces, type Parameters } from '../../shared/sql/bind.ts';
import { shapeOf } from '../../shared/sql/digest-key.ts';
import { mayKill } from '../../shared/sql/kill-statements.ts';
import { type SessionEffect, sessionEffectOf } from '../../shared/sql/session-statements.ts';
import { whyNotInTransaction } from '../../shared/sql/transactions.ts';
import { toUpperAscii } from '../../shared/sql/vocabulary.ts';
import type { RowModule } from '../encode/row-module.ts';
import { longestPipelined } from '../execution/pipeline/pipeline-session.ts';
import { type Known, noEffects, StatementEffects } from '../execution/statement-effects.ts';
import type { Home } from '../execution/transactions/open-transactions.ts';
import type { AnalysedStatement, Statement } from '../execution/work.ts';
import { type Failure, forbidden, type Refused, refusal, refuse } from '../failure/failure.ts';

/** The settings of a section that decide about statements. */
export type StatementSettings = Pick<
  Config,
  'multiStatements' | 'readOnly' | 'sessionReset' | 'coalesce'
>;

/** The parts of a section for endpoints that run SQL, beside those for an exchange. */
export type SqlContext = {
  /** Null: rows are written one by one. */
  readonly rowModule: RowModule | null;
  /** The section's name as JSON in ASCII, as replies have it. */
  readonly sectionJson: string;
  /** How long a statement may become by its parameters. */
  readonly maxStatementBytes: () => number;
  /** The present knowledge of the server's tables and functions. */
  readonly catalogue: () => Known;
  /** The transactions that clients have begun. */
  readonly home: Home;
};

/** A text that a request wants to have run, and how. */
export type StatementWish = RunWish & {
  readonly sql: string;
  readonly params: Parameters | null;
  /** The request's name for its parameters. */
  readonly paramsKey: 'PARAMS' | 'params';
};

/** How a request wants a text to be run. */
export type RunWish = {
  readonly caller: Caller;
  readonly readOnly: boolean;
  /** Whether several statements are refused even if the settings allow them. */
  readonly isSingle: boolean;
  /** Whether a statement is refused if its only effect is on its session, which ends with the request. */
  readonly needsEffect: boolean;
  readonly rollbackOnError: boolean;
  readonly asksServer: boolean;
  /** Whether the reply lists the server's warnings. */
  readonly showsWarnings: boolean;
  /** All that the body of the reply depends on, beside the statement and the settings; null: the reply is not shared. */
  readonly format: string | null;
};

/** A statement to run, or why nothing is run. */
export type Decided = { readonly ok: true; readonly statement: AnalysedStatement } | Refused;

/** For a request without SQL that only asks the server. */
export const nothingToRun: Statement = {
  kind: 'statement',
  sql: null,
  isRead: true,
  effects: noEffects,
  seesOneMoment: true,
  needsFreshSession: false,
  leavesSessionClean: true,
  isReadOnly: false,
  rollbackOnError: false,
  asksServer: true,
  showsWarnings: false,
  shape: null,
  coalescingKey: null,
  analysis: null,
};

/** Functions whose answer does not show that they were ended early. */
const takesTime = /sleep|benchmark/i;

const noKill: Refused = { ok: false, failure: forbidden('kill') };

const severalOff = refusal(
  'MULTI_STATEMENTS_OFF',
  'Several statements in one request are switched off here (multi_statements = off).',
);

/** Beyond this many characters the first word of a statement is cut in a message. */
const maxShownWord = 32;

/**
 * Decides how a text runs. Long texts, and many values, take several pieces.
 * @param maxBytes how long the statement may become by its parameters
 * @param catalogue what is known of the server's tables and functions
 */
export function* decideStatement(
  config: StatementSettings,
  wish: StatementWish,
  maxBytes: number,
  catalogue: Known,
): Pieces<Decided> {
  const { params, paramsKey } = wish;
  const bound =
    params === null
      ? ({ ok: true, sql: wish.sql } as const)
      : yield* bindInPieces(wish.sql, params, maxBytes, paramsKey);
  if (!bound.ok) return refused(unbound(wish, bound.failure));
  const analysis = yield* analyseInPieces(bound.sql, catalogue.builtIns);
  return decideAnalysed(config, wish, analysis, catalogue);
}

function refused(failure: Failure): Refused {
  return { ok: false, failure };
}

function unbound({ isSingle }: RunWish, { code, message, offset }: BindFailure): Failure {
  if (isSingle && code === 'PARAMS_SEVERAL') return severalStatements(offset ?? 0);
  return { ...refusal(code, message), ...(offset !== null && { place: { offset } }) };
}

/** How a text is run, its values in it; or why it is not. */
export function decideAnalysed(
  config: StatementSettings,
  wish: RunWish,
  analysis: Analysis,
  catalogue: Known,
): Decided {
  const { sql, statements, classification } = analysis;
  const { caller, isSingle, needsEffect, rollbackOnError, asksServer, showsWarnings, format } =
    wish;
  const { kind, single, readOnlyAllowed, readsEarlierSession, leavesSessionClean } = classification;
  if (!single && isSingle) return refused(severalStatements(statements[1]?.start ?? 0));
  if (!single && !config.multiStatements) return refused(severalOff);
  const sessionEffect = needsEffect ? sessionEffectOf(analysis) : null;
  if (sessionEffect !== null) return refused(withoutEffect(sessionEffect, analysis));
  if (!isAllowed(caller.client, 'kill') && mayKill(analysis)) return noKill;
  const isReadOnly = config.readOnly || wish.readOnly;
  if (isReadOnly && !readOnlyAllowed) {
    const isRecognised = classification.isRecognised;
    return refused(
      isRecognised ? onlyReads(readerOf(config, wish), single) : notRecognised(analysis),
    );
  }
  const isRead = kind === 'read';
  const isClean = leavesSessionClean && config.sessionReset === 'auto';
  // It asks its own session behind the statement.
  const asksMore = rollbackOnError || asksServer || showsWarnings;
  // The pipeline would refuse what a READ ONLY transaction does not allow, so that a read-only request needs none of its own there.
  const maySharePlace =
    isRead &&
    isClean &&
    !asksMore &&
    readOnlyAllowed &&
    !readsEarlierSession &&
    sql.length <= longestPipelined &&
    !takesTime.test(sql);
  const mayShareReply =
    config.coalesce && classification.repeatable && format !== null && sql.length <= longFrom;
  return {
    ok: true,
    statement: {
      kind: 'statement',
      sql,
      isRead,
      effects: new StatementEffects(catalogue, classification),
      seesOneMoment: isRead && readOnlyAllowed,
      needsFreshSession: readsEarlierSession,
      leavesSessionClean: isClean,
      isReadOnly,
      rollbackOnError,
      asksServer,
      showsWarnings,
      shape: maySharePlace ? shapeOf(sql) : null,
      coalescingKey: mayShareReply
        ? `${isReadOnly ? 'read-only' : 'plain'} ${format} ${caller.owner} ${sql}`
        : null,
      analysis,
    },
  };
}

function severalStatements(offset: number): Failure {
  const message = `One statement at a time: a second one begins at character ${offset}. Several go to /v1/batch.`;
  return { ...refusal('SEVERAL_STATEMENTS', message), place: { offset } };
}

/** The reason why a request is read-only. */
function readerOf(config: StatementSettings, { caller }: RunWish): string {
  if (caller.client.readOnly) return 'This client is read-only (read_only = on)';
  return config.readOnly
    ? 'This section is read-only (read_only = on)'
    : 'This request is read-only';
}

function onlyReads(what: string, isSingle: boolean): Failure {
  const why = isSingle ? 'the statement may write' : 'there are several statements';
  return refusal('READ_ONLY', `${what}, and ${why}.`);
}

/** The first word may be misspelt; or servers may read the text differently. */
function notRecognised({ sql, statements }: Analysis): Failure {
  const unknown = statements.find(({ verb }) => !isKnownVerb(verb));
  const whyNot =
    unknown === undefined
      ? 'servers may read it differently'
      : `no statement begins with ${JSON.stringify(firstWordOf(sql, unknown))}`;
  return refusal(
    'READ_ONLY',
    `The gateway does not recognise the statement: ${whyNot}. A read-only request or section runs only what it recognises as a read.`,
  );
}

/** As the client spelt it. */
function firstWordOf(sql: string, { start, end, verb }: Analysis['statements'][number]): string {
  const at = toUpperAscii(sql.slice(start, end)).indexOf(verb);
  const word = sql.slice(start + at, start + at + verb.length);
  return word.length > maxShownWord ? `${word.slice(0, maxShownWord)}…` : word;
}

/** The client's alternative. A batch takes some settings, and no others. */
function withoutEffect(effect: SessionEffect, analysis: Analysis): Failure {
  const isForBatch = effect === 'setting' && whyNotInTransaction(analysis) === null;
  const way = isForBatch ? settingInBatch : instead[effect];
  const message = `This statement only affects its session, which ends with the request. ${way}`;
  return refusal('SESSION_STATEMENT', message);
}

const settingInBatch =
  'Send it to /v1/batch together with the statements that need it, or in a transaction of /v1/transaction, or put it into init_sql.';

const instead: Readonly<Record<SessionEffect, string>> = {
  transaction:
    'For a transaction, send all its statements to /v1/batch, or begin one with POST /v1/transaction.',
  'distributed transaction':
    'XA needs one session from XA START to XA PREPARE: connect to MySQL without the gateway for it. For a transaction in this database alone, use /v1/batch or /v1/transaction.',
  'table handler': 'Read the rows with SELECT.',
  'table locks':
    'Lock rows instead (SELECT … FOR UPDATE), in a transaction of /v1/batch or /v1/transaction. For the lock of a backup, connect to MySQL without the gateway.',
  'character set': 'Text is always UTF-8 (utf8mb4) here: leave the statement out.',
  setting: 'The key init_sql sets it for every session of the section.',
  'default database':
    'Write the database before the name of the table (db.table), or choose a section of the gateway (section).',
  'prepared statement': 'Send the statement itself, with its values in params.',
  'temporary table':
    'Use WITH, an ordinary table, or a procedure that creates and uses the temporary table.',
};

/** A statement that may not run in a transaction which its client holds. */
export function notInTransaction(reason: string): Refused {
  return refuse('NOT_IN_TRANSACTION', `The statement is not allowed in a transaction: ${reason}.`);
}
