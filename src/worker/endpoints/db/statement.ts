// What is sent to MySQL for a request to /db: bound, classified, allowed or refused. Pure.
// Must not know the reply, nor how a statement is run.
import type { Config } from '../../../shared/settings/config.ts';
import { bind } from '../../../shared/sql/bind.ts';
import { classify } from '../../../shared/sql/classify.ts';
import { shapeOf } from '../../../shared/sql/shape.ts';
import { type Known, TableEffects } from '../../catalogue/table-effects.ts';
import type { Statement } from '../../execute/preparation.ts';
import { noEffects } from '../../execute/statement-effects.ts';
import { type Failure, refusal } from '../../reply/failure.ts';
import { needsConnection } from './metadata.ts';
import type { DbRequest } from './request.ts';

type StatementSettings = Pick<Config, 'multiStatements' | 'readOnly' | 'sessionReset' | 'coalesce'>;

/** A statement to run, or why nothing is run. */
export type Decided =
  | { readonly ok: true; readonly statement: Statement }
  | { readonly ok: false; readonly failure: Failure };

const noStatement = {
  sql: null,
  isRead: true,
  effects: noEffects,
  needsFreshSession: false,
  leavesSessionClean: true,
  isReadOnly: false,
  shape: null,
  coalescingKey: null,
} as const;

/** Functions whose answer does not tell that they were ended early. */
const takesTime = /sleep|benchmark/i;

/**
 * What is sent to MySQL for a request, and how; or why nothing is.
 * @param mostBytes how long the statement may become by its parameters
 * @param catalogue what is known of the server's tables and functions
 */
export function decideStatement(
  config: StatementSettings,
  request: DbRequest,
  mostBytes: number,
  catalogue: Known,
): Decided {
  const { rollbackOnError } = request;
  const asksServer = needsConnection(request.metadata);
  if (request.sql === null) {
    return { ok: true, statement: { ...noStatement, rollbackOnError, asksServer } };
  }
  const bound =
    request.params === null
      ? ({ ok: true, sql: request.sql } as const)
      : bind(request.sql, request.params, mostBytes);
  if (!bound.ok) {
    const { code, message } = bound.failure;
    return { ok: false, failure: refusal(code, message) };
  }
  const classified = classify(bound.sql, catalogue.builtIns);
  const { kind, single, readOnlyAllowed, readsEarlierSession, leavesSessionClean } = classified;
  if (!config.multiStatements && !single) {
    const message = 'Several statements in one request are switched off here.';
    return { ok: false, failure: refusal('MULTI_STATEMENTS_OFF', message) };
  }
  const isReadOnly = config.readOnly || request.readOnly;
  if (isReadOnly && !readOnlyAllowed) {
    const message = 'Only a single statement that reads, and does nothing else, is allowed here.';
    return { ok: false, failure: refusal('READ_ONLY', message) };
  }
  const isRead = kind === 'read';
  const isClean = leavesSessionClean && config.sessionReset === 'auto';
  // Replies with more than the results are nobody else's.
  const isAlone = rollbackOnError || request.metadata.length > 0;
  // What is not allowed in a READ ONLY transaction would be refused in the pipeline.
  const maySharePlace =
    isRead &&
    isClean &&
    !isAlone &&
    readOnlyAllowed &&
    !readsEarlierSession &&
    !isReadOnly &&
    !takesTime.test(bound.sql);
  return {
    ok: true,
    statement: {
      sql: bound.sql,
      isRead,
      effects: new TableEffects(catalogue, classified),
      needsFreshSession: readsEarlierSession,
      leavesSessionClean: isClean,
      isReadOnly,
      rollbackOnError,
      asksServer,
      shape: maySharePlace ? shapeOf(bound.sql) : null,
      coalescingKey:
        config.coalesce && classified.repeatable && !isAlone
          ? keyOf(bound.sql, isReadOnly, request.exactNumbersAsStrings)
          : null,
    },
  };
}

/** All that decides what is sent to MySQL and what the reply's body is, beside this worker's settings. */
function keyOf(sql: string, isReadOnly: boolean, exactNumbersAsStrings: boolean): string {
  return `${isReadOnly ? 'read-only' : 'plain'} ${exactNumbersAsStrings ? 'strings' : 'numbers'} ${sql}`;
}
