// What a run and whoever asked for it say to each other.
// Must not know how statements are run, nor what is made of results.
import type { Column } from '../../shared/mysql/packets.ts';
import type { ResultSink } from '../../shared/mysql/query.ts';
import type { Seen } from '../servers/consistency/consistency.ts';
import type { RunEnd } from './outcome.ts';

/** What a sink has made of all results, none of which has left; the bytes are valid during the call only. */
export type HeldResults = {
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
  /** Whether a result set of these columns can begin without that anything leaves. */
  fitsColumns(columns: readonly Column[]): boolean;
  /** Whether rows of so many bytes, as MySQL sends them, can be taken without that anything leaves. */
  fitsRows(bytes: number): boolean;
  /** Forgets the results so far; returns false when some have left already. */
  restart(): boolean;
  /** What was made of one complete result set; null when it is not all there: some has left, or there is more. */
  held(): HeldResults | null;
  /** Takes what another sink has made of the results that this one would have got. */
  adopt(held: HeldResults): void;
  /**
   * The whole reply, before it is known whether it counts: `finish` sends it. Where it is longer than `mostBytes`, what is
   * returned is without its rows, and says so. Missing: a reply of its kind is never kept.
   */
  seal?(mostBytes: number): Buffer;
  /** Makes a reply that was kept this one. @param isRepeated it was given before */
  replay?(kept: Buffer, isRepeated: boolean): void;
}

/** Whoever asks for a run. */
export interface RunEvents {
  readonly sink: RunSink;
  /** What servers are told of the trace that the request is part of; null: it is part of none. */
  readonly traceparent: string | null;
  /** Where a section has several servers: what the client has seen now, at most. Called before the end, or not at all. */
  seen(seen: Seen): void;
  /** Called exactly once. What it throws must not be left to the run, whose session others wait for. */
  runEnded(end: RunEnd): void;
}
