// What a run and whoever asked for it say to each other.
// Must not know how statements are run, nor what is made of results.
import type { Connection } from '../../shared/mysql/connection.ts';
import type { ServerError } from '../../shared/mysql/packets.ts';
import type { ResultSink } from '../../shared/mysql/query.ts';
import type { RunEnd, StopReason } from './outcome.ts';

/** Work on the connection between the statements' end and the session's release. */
export type Afterwards = (connection: Connection, error: ServerError | null) => Promise<void>;

/** What a sink has made of all results, none of which has left; the bytes are valid during the call only. */
export type HeldResults = {
  readonly bytes: Buffer;
  readonly rows: number;
  readonly isTruncated: boolean;
};

/** Takes the results of a run, and its error. */
export interface RunSink extends ResultSink {
  /** Bytes made of the results so far. */
  readonly totalBytes: number;
  /** Bytes that may still be made before the first ones leave; 0 once they have left. */
  readonly heldRoom: number;
  /** MySQL refused a statement; no further result follows. */
  error(error: ServerError): void;
  /** Forgets the results so far; returns false when some have left already. */
  restart(): boolean;
  /** What was made of one complete result set; null when it is not all there: some has left, or there is more. */
  held(): HeldResults | null;
  /** Takes what another sink has made of the results that this one would have got. */
  adopt(held: HeldResults): void;
}

/** Whoever asks for a run. */
export interface RunEvents {
  readonly sink: RunSink;
  readonly afterwards: Afterwards | null;
  /** Called, where there is such a method, before the first byte on behalf of the statements may be written. */
  runBegins?(): void;
  /** Called exactly once. What it throws must not be left to the run, whose session others wait for. */
  runEnded(end: RunEnd): void;
}

/** A run as its owner sees it. `stop` may be called at any time. */
export interface StatementRun {
  /** Whether MySQL may have got the statements. */
  readonly isSent: boolean;
  /** How long the statements have waited for their session, ms. */
  readonly queueMs: number;
  /** How long they have been running, ms. */
  readonly databaseMs: number;
  /** Asks for a session; what follows is told by its events. */
  start(): void;
  /** Ends the run: withdraws it from the queue, or kills what runs. */
  stop(reason: StopReason): void;
  /** The reader does not keep up: no more rows for now. */
  pause(): void;
  resume(): void;
  /** Lets the statements run to their end though nobody wants the results any more. */
  abandonResults(): void;
}
