// One attempt at a batch with a key: what it needs of the table of keys, and whom it replaces.
// Must not know how statements are run.
import { fetchRows, RefusedError } from '../../../shared/mysql/commands.ts';
import { isSameServer, type LostSession } from '../../../shared/mysql/identity.ts';
import type { Session } from '../../servers/pool/session.ts';
import type { Ledger } from './ledger.ts';
import { type IdempotencyKey, type KeptRow, LedgerEntry } from './ledger-entry.ts';

/** Whose attempt it is. */
export interface AttemptEvents {
  /** How long, in ms, an answer to COMMIT is waited for. */
  readonly commitTimeoutMs: number;
  /** Whether what became of an attempt before is not known. */
  readonly isRecovering: boolean;
  /** Told instead of an end: the key is there, with this row. */
  keyTaken(row: KeptRow): void;
}

/** One attempt. */
export class Attempt {
  readonly ledger: Ledger;
  readonly entry: LedgerEntry;
  /** The session that an attempt before has lost; null: none has. */
  readonly predecessor: LostSession | null;
  readonly #events: AttemptEvents;

  constructor(
    ledger: Ledger,
    key: IdempotencyKey,
    predecessor: LostSession | null,
    events: AttemptEvents,
  ) {
    this.ledger = ledger;
    this.entry = new LedgerEntry(ledger.table, key);
    this.predecessor = predecessor;
    this.#events = events;
  }

  keyTaken(row: KeptRow): void {
    this.#events.keyTaken(row);
  }

  get isRecovering(): boolean {
    return this.#events.isRecovering;
  }

  /** How long, in ms, an answer to COMMIT is waited for: after that the key is asked. */
  get commitTimeoutMs(): number {
    return this.#events.commitTimeoutMs;
  }

  /**
   * Ends what is left of the attempt before: its transaction would hold the key until the server notices that nobody is there.
   * Numbers of connections are not given twice in one run of a server. Rejects when this session's connection is lost.
   */
  async endPredecessor({ connection, identity }: Session): Promise<void> {
    const lost = this.predecessor;
    if (lost === null || !isSameServer(lost.identity, identity)) return;
    try {
      await fetchRows(connection, `KILL ${lost.threadId}`);
    } catch (error) {
      // It has ended by itself.
      if (!(error instanceof RefusedError)) throw error;
    }
  }
}
