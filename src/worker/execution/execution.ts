// The contract between what runs statements and what asks for them to be run.
import type { Column } from '../../shared/mysql/packets.ts';
import type { ResultSink } from '../../shared/mysql/query.ts';
import type { Outcome, ServerFailure } from '../failure/failure.ts';
import type { Consistency, TokenResult } from '../servers/consistency/consistency.ts';
import type { Control } from '../servers/pool/control.ts';
import type { Pool } from '../servers/pool/pool.ts';
import type { Admission, Refusal } from '../servers/pool/queue.ts';
import type { ReservedSessions } from '../servers/pool/reserved-sessions.ts';
import type { Server } from '../servers/server.ts';
import type { Requirements } from '../servers/servers.ts';
import type { KeptRow } from './idempotency/key-store.ts';
import type { Pipeline } from './pipeline/pipeline.ts';
import type { ReadOnlyDoubt } from './read-only-proof.ts';
import type { RunTimes } from './run-times.ts';
import type { StopReason } from './stop-reason.ts';
import type { TransactionOver } from './transaction-end.ts';
import type { Expectation } from './work.ts';

/** Statements on their way to a known end. Its creator starts it, and may stop it at any time. */
export interface Execution {
  /** Begins; the events report what follows. */
  start(): void;
  /** Ends it: withdraws it from where it waits, or kills what runs. */
  stop(reason: StopReason): void;
  /**
   * Reads no more rows for now: the client does not keep up. When the run is over, its client may still be reading: then neither this
   * nor `resume` has an effect. A run without this method and the next three sends no rows before its end.
   */
  pause?(): void;
  resume?(): void;
  /** Lets the statements run to their end, and discards their results. */
  abandonResults?(): void;
  /** Resolves with what rows that are under way have seen, at most. Never rejects. */
  seeNow?(): Promise<TokenResult>;
  /** The reply has left, or its client is gone. May be called before the end. Missing: it makes no difference. */
  replyLeft?(): void;
  /** Whether MySQL may have received the statements. */
  readonly isSent: boolean;
  /** Whether a stop leaves nothing half done. If not, the statements run to their end without their client. */
  readonly isRevocable: boolean;
  /** The server that has the statements, or will have them; null while it is not chosen. */
  readonly backend: string | null;
}

/** The receiver of a run's reports. */
export interface RunEvents {
  readonly sink: RunSink;
  /** The trace that the request is part of, as servers receive it. */
  readonly traceparent: string | null;
  /** If a section has several servers: what the client has seen now, at most. Called before the end, or not at all. */
  seen(seen: TokenResult): void;
  /** Called exactly once. It must not throw: others wait for the run's session. */
  runEnded(end: RunEnd): void;
}

/** A sink's bytes of all results, before any of them has left. They are valid during the call only. */
export type SharedResults = {
  readonly bytes: Buffer;
  readonly rows: number;
  readonly isTruncated: boolean;
};

/** Takes the results of a run. */
export interface RunSink extends ResultSink {
  /** Bytes made of the results so far. */
  readonly totalBytes: number;
  /** Whether some of them have left: what was answered cannot be taken back any more. */
  readonly hasLeft: boolean;
  /** Whether a result set of these columns can begin before anything leaves. */
  fitsColumns(columns: readonly Column[]): boolean;
  /** Whether rows of so many bytes, as MySQL sends them, can be added before anything leaves. */
  fitsRows(bytes: number): boolean;
  /** Forgets the results so far; returns false if some have left already. */
  restart(): boolean;
  /** The bytes of one complete result set; null if some have left, or there are more result sets. */
  held(): SharedResults | null;
  /** Takes what another sink has made of the same results. */
  adopt(held: SharedResults): void;
  /** The warnings of the statement whose results are complete, if the statement asks for them. Missing: a reply of its kind has no place for them. */
  listWarnings?(warnings: readonly ServerWarning[]): void;
  /**
   * The whole reply, before it is known whether it counts: `finish` sends it. A reply longer than `maxBytes` is returned without its
   * rows, and says so. Missing: a reply of its kind is never kept.
   */
  seal?(maxBytes: number): Buffer;
  /** Makes a reply that was kept this one. @param isRepeated it was given before */
  replay?(kept: Buffer, isRepeated: boolean): void;
}

/** Why there is no server to run on, if a section has several. `behind`: none of them shows what the client has seen. */
export type Unrouted = 'no primary' | 'two primaries' | 'behind';

/** The server's report about itself, beside the statements' results. */
export type ServerFacts = {
  /** MySQL's one-line status text. */
  readonly statistics: string;
  readonly serverVersion: string;
};

/** One warning, as the server words it. */
export type ServerWarning = {
  readonly level: string;
  readonly errno: number;
  readonly message: string;
};

/** MySQL answered to the end. */
export type Answer = {
  readonly kind: 'answered';
  /** Null: all statements succeeded. */
  readonly failure: ServerFailure | null;
  /** Null: the request did not ask for them, or a statement failed. */
  readonly facts: ServerFacts | null;
};

/** The answer to statements that have all succeeded. */
export const succeeded: Answer = { kind: 'answered', failure: null, facts: null };

/** Why a batch failed or was applied in part, beside errors of MySQL's and lost connections. */
export type BatchFault =
  | {
      readonly kind: 'unmet';
      readonly expect: Expectation;
      readonly found: { readonly of: Expectation['of']; readonly count: number | bigint };
    }
  /** A procedure ended the transaction. */
  | { readonly kind: 'ended' }
  /** Something was, or would have been, changed that a ROLLBACK does not undo. */
  | { readonly kind: 'not undoable' };

/** The end of a run. */
export type RunEnd =
  | Answer
  /** Nothing was sent to MySQL. */
  | { readonly kind: 'not executed'; readonly reason: Refusal | StopReason | Unrouted }
  /** Stopped while running; whatever MySQL may still answer is not trusted. */
  | { readonly kind: 'stopped'; readonly reason: StopReason }
  /** A READ ONLY run was cut short, and there was no second one. */
  | { readonly kind: 'cut short'; readonly reason: Refusal | StopReason | Unrouted }
  /** An exception was thrown while the statements were handled. The receiver must log it. */
  | { readonly kind: 'faulted'; readonly isSent: boolean; readonly cause: unknown }
  /** A batch that was ended for what one of its statements did, or would have done. */
  | {
      readonly kind: 'batch failed';
      readonly fault: BatchFault;
      /** Null: none of them caused it. */
      readonly statement: number | null;
      readonly outcome: Outcome;
    }
  /** A batch that was stopped before COMMIT, and undone as far as `outcome` says. */
  | { readonly kind: 'batch stopped'; readonly reason: StopReason; readonly outcome: Outcome }
  /**
   * An open transaction is over. `not_executed`: before anything was sent; `rolled_back`: COMMIT was not sent; `partial`: a statement
   * in it has ended it. `over`: how it has ended; a job whose own step has ended it leaves that to the step.
   */
  | {
      readonly kind: 'transaction ended';
      readonly outcome: Outcome;
      readonly over?: TransactionOver;
    }
  /** The client asked for the end of its transaction, and an earlier COMMIT runs or is about to. */
  | { readonly kind: 'commit running' }
  /** The connection was lost after the statement was sent. */
  | { readonly kind: 'lost'; readonly outcome: 'unknown' | 'rolled_back' }
  /** The server provably lacks something that the client has seen before. Nothing was executed, or only read. */
  | { readonly kind: 'token lost'; readonly isRead: boolean }
  /** The request only reads, and one of its statements may do more. It was not executed. */
  | {
      readonly kind: 'not only reading';
      readonly doubt: ReadOnlyDoubt;
      /** The statement's number in a batch, from 0; null: there is one. */
      readonly statement: number | null;
    }
  /** Not executed: the key of the batch is there already, with this row. A keyed run makes the reply of it. */
  | { readonly kind: 'key taken'; readonly row: KeptRow }
  /** It is not known yet what became of a batch with a key, or of another request with the same key. */
  | { readonly kind: 'key unknown'; readonly reason: StopReason | Refusal | Unrouted | 'lost' }
  /** Not executed because of its key: the key belongs to another request, has no stored reply, or cannot be stored. */
  | {
      readonly kind: 'key refused';
      readonly reason: 'other request' | 'no reply' | 'no table';
      /** The outcome of its statements, if they were run and not all is undone. */
      readonly left?: Outcome;
    };

/** One server as statements use it, in one worker. */
export type RunContext = {
  readonly server: Server;
  /** The server's name in logs and metrics. */
  readonly address: string;
  readonly pool: Pool;
  /** The sessions that open transactions have. */
  readonly reserved: ReservedSessions;
  readonly control: Control;
  /** Null: every statement runs on a session of its own. */
  readonly pipeline: Pipeline | null;
  /** Null: it is the only server, and positions are not tracked. */
  readonly consistency: Consistency | null;
};

/** The conditions for the choice of a server, and for another run at another one. */
export type RouteWish = Requirements & {
  /** It has an idempotency key: what was rolled back may run again at another server. */
  readonly hasKey: boolean;
};

/** Creates what runs on one server. */
export type CreateRun = (context: RunContext, events: RunEvents) => Execution;

/** Chooses the server on which something runs. */
export interface Launcher {
  /** The places of requests that wait outside of a pool's queue. */
  readonly admission: Admission;
  /** Creates a run that the caller must start. */
  launch(wish: RouteWish, create: CreateRun, events: RunEvents, times: RunTimes): Execution;
}
