// The work of a client: one text of statements, or several statements that count together.
import type { Analysis } from '../../shared/sql/analyse.ts';
import type { Isolation } from '../../shared/sql/transactions.ts';
import type { IdempotencyKey } from './idempotency/key-store.ts';
import type { StatementEffects } from './statement-effects.ts';
import type { Writes } from './undoable-tables.ts';

/** A text, and what is known about it. */
export type Statement = {
  readonly kind: 'statement';
  /** Null: nothing runs; the request needs a session only. */
  readonly sql: string | null;
  /** Killing it changes nothing, if the tables that it names are harmless. */
  readonly isRead: boolean;
  /** The further effects of the tables that it names. The other fields hold only if these are harmless. */
  readonly effects: StatementEffects;
  /** One read without locks: all of its rows are of the moment at which it began. */
  readonly seesOneMoment: boolean;
  /** It reads what an earlier statement may have left in the session. */
  readonly needsFreshSession: boolean;
  /** Its text shows no change of the session; the server's flags must agree. */
  readonly leavesSessionClean: boolean;
  /** It runs inside a READ ONLY transaction. */
  readonly isReadOnly: boolean;
  /** A number that statements like it share; null: it must run alone. */
  readonly shape: number | null;
  /** After an error of MySQL's: whether the transaction is rolled back before the reply. */
  readonly rollbackOnError: boolean;
  /** Whether the server is asked for its statistics once the statements have succeeded. */
  readonly asksServer: boolean;
  /** Whether the server is asked for the texts of its warnings once the statement has succeeded. */
  readonly showsWarnings: boolean;
  /** Reads with an equal key have the same reply; null: it runs for its own request alone. */
  readonly coalescingKey: string | null;
  /** Null only if `sql` is. */
  readonly analysis: Analysis | null;
};

/** A text that a request brings. */
export type AnalysedStatement = Statement & {
  readonly sql: string;
  readonly analysis: Analysis;
};

/** The condition that a statement must meet, or all is undone. Bounds are inclusive. */
export type Expectation = {
  readonly of: 'affected_rows' | 'row_count';
  readonly min: number;
  readonly max: number;
  /** The reply's code if it is not met. */
  readonly code: 'EXPECTATION_FAILED' | 'TOO_MANY_ROWS' | 'NOT_ONE_ROW';
};

/** One statement of a batch. */
export type BatchStep = {
  readonly sql: string;
  readonly statement: Statement;
  /** It may have several results, and end the transaction. */
  readonly isCall: boolean;
  readonly expect: Expectation | null;
};

/** A key, and how long its client waits: after that time the client must repeat the request to learn more. */
export type BatchKey = IdempotencyKey & { readonly timeoutMs: number };

/** Statements that run one after another on one session, and the conditions under which they count. */
export type Batch = {
  readonly kind: 'batch';
  readonly steps: readonly BatchStep[];
  /** In one transaction; the fields below apply to these batches only. */
  readonly isAtomic: boolean;
  /** Null: the session's. */
  readonly isolation: Isolation | null;
  readonly isReadOnly: boolean;
  /** How often it runs again after a deadlock or a similar conflict. */
  readonly maxRetries: number;
  /** It ends in a ROLLBACK even if all statements succeed. */
  readonly isDryRun: boolean;
  /** The writes that a ROLLBACK must be known to undo before anything runs; null: there is no such condition. */
  readonly mustUndo: Writes | null;
  /** The key is stored without a reply: the batch is not run, and never will be. */
  readonly isBarred?: boolean;
  /** Null: it has no idempotency key. */
  readonly key: BatchKey | null;
};
