// What one request's client has seen before, and sees now, at the server that runs its statements.
// Must not know how they are run, nor what is made of a server that lacks something.
import type { Connection } from '../../../shared/mysql/connection.ts';
import type { Control } from '../pool/control.ts';
import type { Session } from '../pool/session.ts';
import {
  type Arrival,
  type Consistency,
  nothingSeen,
  type Seen,
  unverified,
} from './consistency.ts';
import type { Question } from './question.ts';
import type { Token } from './token.ts';

/** Of one request at one of several servers. */
export class Witness {
  readonly #consistency: Consistency;
  /** What the client has seen before; null: it does not say. */
  readonly #after: Token | null;
  /** The server could not tell whether it shows what the client has seen. */
  #isUnverified = false;
  #seen: Seen | null = null;

  /** @param after what the client has seen before; null: it does not say */
  constructor(consistency: Consistency, after: Token | null) {
    this.#consistency = consistency;
    this.#after = after;
  }

  /** What it has seen last; null: nothing was asked yet. */
  get seen(): Seen | null {
    return this.#seen;
  }

  /** Whether the client says what it has seen. */
  get hasToken(): boolean {
    return this.#after !== null;
  }

  /** Whether something must be waited for, or asked, before a statement runs there. */
  needsArrival(isRead: boolean): boolean {
    return this.#after !== null && this.#consistency.needsArrival(this.#after, isRead);
  }

  /** Waits until the session's server shows what the client has seen, a second at most. Rejects when the connection is lost. */
  async arrive(session: Session): Promise<Arrival> {
    if (this.#after === null) return 'ready';
    const arrival = await this.#consistency.arrive(session, this.#after);
    this.#isUnverified = arrival === 'unverified';
    return arrival;
  }

  /** What is to be asked in the same write as a statement, behind it. */
  questionOn(connection: Connection): Question {
    return this.#consistency.questionOn(connection);
  }

  /** What it has seen after a statement on a session. @param row the answer to the question; null: there was none */
  see(session: Session, row: readonly (string | null)[] | null, isWriteAlone: boolean): Seen {
    const found = this.#consistency.seenOn(session, row, this.#after, isWriteAlone);
    this.#seen = this.#isUnverified ? unverified(found) : found;
    return this.#seen;
  }

  /** The answer comes to nobody: a later write on the session is not to be taken for this one. */
  forget(session: Session): void {
    this.#consistency.forget(session);
  }

  /**
   * The same, asked on a connection beside the session while its rows are under way. Never rejects.
   * @param seesOneMoment whether what the statement sees is of one moment: else nothing bounds it
   */
  async seeNow(control: Control, session: Session, seesOneMoment: boolean): Promise<Seen> {
    const found = await control.ask(session.identity, (connection) =>
      this.#consistency.seenNow(connection, this.#after),
    );
    if (found === null) return nothingSeen;
    return seesOneMoment && !this.#isUnverified ? found : unverified(found);
  }
}
