// What whoever asked for statements to be run may do with them while they are.
// Must not know how they are run.
import type { Seen } from '../servers/consistency/consistency.ts';
import type { StopReason } from './outcome.ts';

/** Statements on their way to a known end. Whoever created it starts it, and may stop it at any time. */
export interface Execution {
  /** Asks for an answer; what follows is told by its events. */
  start(): void;
  /** Ends it: withdraws it from where it waits, or kills what runs. */
  stop(reason: StopReason): void;
  /** The reader does not keep up: no more rows for now. */
  pause(): void;
  resume(): void;
  /** Lets the statements run to their end though nobody wants the results any more. */
  abandonResults(): void;
  /** Of rows that are under way: what they have seen, at most. Never rejects. */
  seeNow(): Promise<Seen>;
  /** Whether MySQL may have got the statements. */
  readonly isSent: boolean;
  /** Whether a stop leaves nothing behind that somebody had begun: else they run to their end without their client. */
  readonly isRevocable: boolean;
  /** The server that has the statements, or will have them; null: it is not chosen yet. */
  readonly backend: string | null;
}
