// Statements that are run one after another on one session, and the conditions under which they count.
// Must not know how they reach MySQL.
import type { Isolation } from '../../shared/sql/isolation.ts';
import type { IdempotencyKey } from './idempotency/ledger-entry.ts';
import type { Statement } from './preparation.ts';
import type { Writes } from './undoable-tables.ts';

/** What a statement must have done, or all is undone. Bounds are inclusive. */
export type Expectation = {
  readonly of: 'affected_rows' | 'row_count';
  readonly least: number;
  readonly most: number;
  /** What is told where it is not met. */
  readonly code: 'EXPECTATION_FAILED' | 'TOO_MANY_ROWS';
};

/** One of the statements. */
export type BatchStep = {
  readonly sql: string;
  readonly statement: Statement;
  /** It may have several results, and end the transaction. */
  readonly isCall: boolean;
  readonly expect: Expectation | null;
};

/** A key, and how long its client waits: what is not known by then, the client must ask for again. */
export type BatchKey = IdempotencyKey & { readonly timeoutMs: number };

/** What is to be run. */
export type Batch = {
  readonly steps: readonly BatchStep[];
  /** In one transaction; what is said of transactions below holds for these only. */
  readonly isAtomic: boolean;
  /** Null: the session's. */
  readonly isolation: Isolation | null;
  readonly isReadOnly: boolean;
  /** How often it is begun anew after a deadlock or its like. */
  readonly mostRetries: number;
  /** It ends in a ROLLBACK though all went well. */
  readonly isDryRun: boolean;
  /** What a ROLLBACK must be known to undo before anything is run; null: there is no such condition. */
  readonly mustUndo: Writes | null;
  /** The key is taken, and stays without a reply: the batch is not run, and never will be. */
  readonly isBarred?: boolean;
  /** What it is executed only once for; null: it has no key. */
  readonly key: BatchKey | null;
};

/** Why a batch came to nothing, or to a part, beside errors of MySQL's and lost connections. */
export type BatchFault =
  | { readonly kind: 'unmet'; readonly expect: Expectation; readonly found: string }
  /** A procedure ended the transaction. */
  | { readonly kind: 'ended' }
  /** Something was, or would have been, changed that a ROLLBACK does not undo. */
  | { readonly kind: 'not undoable' };
