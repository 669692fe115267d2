// Decides how a batch runs, and whether each of its statements may be part of one, before anything runs. Pure.
import type { Caller } from '../../../shared/clients/caller.ts';
import { isAllowed } from '../../../shared/clients/client.ts';
import type { OwnClaims } from '../../../shared/named/own-claims.ts';
import type { NamedStatement } from '../../../shared/named/statement.ts';
import type { Pieces } from '../../../shared/pieces.ts';
import { whyNotInTransaction } from '../../../shared/sql/transactions.ts';
import { dependsOnRowCount } from '../../execution/warnings.ts';
import type { AnalysedStatement, Batch, BatchStep, Expectation } from '../../execution/work.ts';
import { forbidden, type Refused, refuse } from '../../failure/failure.ts';
import { batchOf, createStep, type DecidedBatch, decideStep } from '../batch-step.ts';
import { stepsOf, writeNamed } from '../named/call.ts';
import { noSuchStatement } from '../named/failures.ts';
import type { NamedStatements } from '../named/statements.ts';
import type { SqlSection } from '../sections.ts';
import { decideStatement, type StatementWish } from '../statement.ts';
import type { AskedNamed, AskedSql, AskedStatement, BatchRequest } from './batch-request.ts';

/** A batch to run, and what its named statements ask for; or why nothing is run. */
export type DecidedRequest =
  | {
      readonly ok: true;
      readonly batch: Batch;
      /** For each statement, the named one that it is; null: it is SQL. */
      readonly named: readonly (NamedStatement | null)[];
      /** The claims that are bound, as text: a part of what owns the batch. '' if there are none. */
      readonly claims: string;
      readonly ownClaims: OwnClaims;
    }
  | Refused;

/** The parts of a worker and of a section that decide about a batch. */
export type BatchContext = {
  readonly caller: Caller;
  readonly section: SqlSection;
  readonly statements: NamedStatements;
};

/** One statement of a batch, decided. */
type Decided =
  | {
      readonly ok: true;
      readonly step: BatchStep;
      readonly named: NamedStatement | null;
      readonly claims: string;
      readonly ownClaims: OwnClaims;
    }
  | Refused;

/** Decides how a request to /v1/batch runs. The first statement that may not run refuses all of them. */
export function* decideBatch(request: BatchRequest, context: BatchContext): Pieces<DecidedRequest> {
  const isReadOnly = context.section.config.readOnly || request.readOnly;
  const steps: BatchStep[] = [];
  const named: (NamedStatement | null)[] = [];
  const ownClaims = new Map<string, string>();
  let claims = '';
  for (const [number, asked] of request.statements.entries()) {
    if (number % statementsInPiece === statementsInPiece - 1) yield;
    const showsWarnings = request.showWarnings && !isWarningLost(request.statements[number + 1]);
    const decided =
      asked.kind === 'named'
        ? yield* decideNamedStep(asked, request, showsWarnings, context)
        : yield* decideSqlStep(asked, isReadOnly, showsWarnings, context);
    if (!decided.ok) {
      const { failure } = decided;
      const place = { ...failure.place, statement: number };
      return { ok: false, failure: { ...failure, place } };
    }
    steps.push(decided.step);
    named.push(decided.named);
    claims += decided.claims;
    for (const [path, value] of decided.ownClaims) ownClaims.set(path, value);
  }
  const batch: Batch = {
    kind: 'batch',
    steps,
    // Only in a READ ONLY transaction does the server promise that nothing is written.
    isAtomic: request.isAtomic || isReadOnly,
    isolation: request.isolation,
    isReadOnly,
    maxRetries: request.retry,
    isDryRun: false,
    mustUndo: null,
    key: null,
  };
  return { ok: true, batch, named, claims, ownClaims };
}

/** Whether asking for warnings behind a statement would change what the next one sees. */
function isWarningLost(next: AskedStatement | undefined): boolean {
  return next?.kind === 'sql' && dependsOnRowCount(next.sql);
}

const noClaims: OwnClaims = new Map();

function* decideSqlStep(
  asked: AskedSql,
  isReadOnly: boolean,
  showsWarnings: boolean,
  { caller, section: { config, context } }: BatchContext,
): Pieces<Decided> {
  if (!isAllowed(caller.client, 'sql')) return noSql;
  const wish = wishOf(asked, caller, isReadOnly, showsWarnings);
  const maxBytes = context.maxStatementBytes();
  const decided = yield* decideStatement(config, wish, maxBytes, context.catalogue());
  if (!decided.ok) return decided;
  const stepped = decideStep(decided.statement, asked.expect);
  if (!stepped.ok) return stepped;
  return { ok: true, step: stepped.step, named: null, claims: '', ownClaims: noClaims };
}

const batchInBatch = refuse(
  'NOT_IN_TRANSACTION',
  'A named :batch is a transaction of its own: it is not allowed in a batch.',
);
const needsAtomic = refuse(
  'NOT_IN_TRANSACTION',
  'This named statement is undone unless it does what is expected of it: it needs a transaction, and atomic is false.',
);

function* decideNamedStep(
  { name, params }: AskedNamed,
  { isAtomic, readOnly, showWarnings }: BatchRequest,
  showsWarnings: boolean,
  { caller, section, statements }: BatchContext,
): Pieces<Decided> {
  if (!isAllowed(caller.client, 'named')) return noNamed;
  const entry = statements.find(caller.client, name, section.config.section);
  if (entry === null) return { ok: false, failure: noSuchStatement };
  // Warnings name tables and columns.
  if (showWarnings && !isAllowed(caller.client, 'sql')) return noSql;
  if (entry.statement.kind === 'batch') return batchInBatch;
  const given = { kind: 'json', params } as const;
  const call = { entry, section, caller, given, readOnly, format: null, showsWarnings };
  const written = yield* writeNamed(call);
  if (!written.ok) return written;
  const [step] = stepsOf(written.parts);
  if (step === undefined) throw new Error('a named statement has a part');
  if (!isAtomic && step.expect !== null && !entry.statement.isRead) return needsAtomic;
  const { claims, ownClaims } = written;
  return { ok: true, step, named: entry.statement, claims, ownClaims };
}

/** A named statement needs that permission, beside the one for batches. */
const noNamed: Refused = { ok: false, failure: forbidden('named') };

/** A step that is SQL needs that permission, beside the one for batches. */
const noSql: Refused = { ok: false, failure: forbidden('sql') };

/** One takes a few microseconds. */
const statementsInPiece = 64;

function wishOf(
  { sql, params }: AskedSql,
  caller: Caller,
  readOnly: boolean,
  showsWarnings: boolean,
): StatementWish {
  return {
    caller,
    sql,
    params,
    paramsKey: 'params',
    readOnly,
    isSingle: true,
    needsEffect: false,
    rollbackOnError: false,
    asksServer: false,
    showsWarnings,
    format: null,
  };
}

/** Why a statement may have to be undone. */
export type Undoable = { readonly maxAffected: number | null; readonly isDryRun: boolean };

/**
 * A batch of one, which is undone in the end, or when it touches too many rows; or why it is not run: it is not known
 * that all it does can be undone. The server is asked about its tables before it is run.
 */
export function decideUndoable(
  statement: AnalysedStatement,
  { maxAffected, isDryRun }: Undoable,
): DecidedBatch {
  const { kind, tables, readOnlyAllowed, leavesSessionClean } = statement.analysis.classification;
  const isRead = kind === 'read';
  const isKnown = isRead || (kind === 'write' && tables !== null && leavesSessionClean);
  const whyNot = isKnown
    ? whyNotInTransaction(statement.analysis)
    : 'a ROLLBACK may not undo everything that it does';
  if (whyNot !== null) {
    const message = `The statement is not run with dry_run or max_affected: ${whyNot}.`;
    return refuse('NOT_UNDOABLE', message);
  }
  const expect: Expectation | null =
    maxAffected === null || isRead
      ? null
      : { of: 'affected_rows', min: 0, max: maxAffected, code: 'TOO_MANY_ROWS' };
  const batch = batchOf([createStep(statement, expect)], {
    isReadOnly: statement.isReadOnly || (isRead && readOnlyAllowed),
    isDryRun,
    mustUndo: isRead || tables === null ? null : { tables },
  });
  return { ok: true, batch };
}
