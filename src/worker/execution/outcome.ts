// What may become of a request's statements, and who may stop them.
// Must not know how they are run.

import type { ServerFailure } from '../failure/failure.ts';
import type { Refusal } from '../servers/pool/waiter.ts';
import type { BatchFault } from './batch.ts';
import type { ReadOnlyDoubt } from './pipeline/read-only-proof.ts';

/** Why a run was stopped from outside; `killed`: somebody asked for that; `server left`: to be begun at another server, which is never told. */
export type StopReason =
  | 'deadline'
  | 'client gone'
  | 'stalled'
  | 'too large'
  | 'too wide'
  | 'killed'
  | 'server left'
  | 'stopping';

/** What was asked of the server beside the statements. */
export type ServerFacts = {
  /** MySQL's one-line status text. */
  readonly statistics: string;
  readonly serverVersion: string;
};

/** MySQL answered to the end. */
export type Answer = {
  readonly kind: 'answered';
  /** Null: all statements succeeded. */
  readonly failure: ServerFailure | null;
  /** Null: none were asked for, or there was a failure. */
  readonly facts: ServerFacts | null;
};

/** Why there is no server to run on, where a section has several; `behind`: those there are do not show what the client has seen. */
export type Unrouted = 'no primary' | 'two primaries' | 'behind';

/** What became of the statements. */
export type RunEnd =
  | Answer
  /** Nothing was sent to MySQL. */
  | { readonly kind: 'not executed'; readonly reason: Refusal | StopReason | Unrouted }
  /** Stopped while running; whatever MySQL may still answer is not trusted. */
  | { readonly kind: 'stopped'; readonly reason: StopReason }
  /** A READ ONLY run was cut short, and there was no second one. */
  | { readonly kind: 'cut short'; readonly reason: Refusal | StopReason | Unrouted }
  /** An exception was thrown while the statements were handled; it is whoever gets this that must have it logged. */
  | { readonly kind: 'faulted'; readonly isSent: boolean; readonly cause: unknown }
  /** A batch that was ended for what one of its statements did, or would have done. */
  | {
      readonly kind: 'batch failed';
      readonly fault: BatchFault;
      /** Null: none of them is to blame. */
      readonly statement: number | null;
      readonly outcome: Outcome;
    }
  /** A batch that was stopped before COMMIT, and undone as far as `outcome` says. */
  | { readonly kind: 'batch stopped'; readonly reason: StopReason; readonly outcome: Outcome }
  /**
   * The transaction that its client held is over. `not_executed`: before anything was sent; `rolled_back`: COMMIT was not sent;
   * `partial`: a statement in it has ended it.
   */
  | { readonly kind: 'transaction ended'; readonly outcome: Outcome }
  /** The end of a held transaction was asked for, and a COMMIT that was asked for before runs or is about to. */
  | { readonly kind: 'commit running' }
  /** The connection was lost after the statement was sent. */
  | { readonly kind: 'lost'; readonly outcome: 'unknown' | 'rolled_back' }
  /** What the client has seen before is there no more, provably: nothing was executed, or only read. */
  | { readonly kind: 'token lost'; readonly isRead: boolean }
  /** The request only reads, and one of its statements is not known to. It was not executed. */
  | {
      readonly kind: 'not only reading';
      readonly doubt: ReadOnlyDoubt;
      /** Of a batch its number, from 0; null: there is one. */
      readonly statement: number | null;
    }
  /** Of a batch with a key: what became of it, or of another request with the same key, is not known yet. */
  | { readonly kind: 'key unknown'; readonly reason: StopReason | Refusal | Unrouted | 'lost' }
  /** It was not executed for its key: which stands for another request, or whose reply was never written, or cannot be kept. */
  | {
      readonly kind: 'key refused';
      readonly reason: 'other request' | 'no reply' | 'no table';
      /** What became of its statements, if they were run and not all is undone. */
      readonly left?: Outcome;
    };

/** What became of the statements of a request that got no result. */
export type Outcome = 'not_executed' | 'failed' | 'partial' | 'rolled_back' | 'unknown';
