// A session on which several statements are run one after another: sent, interrupted, undone.
// Must not know what they are, nor what follows from their answers.
import type { OkPacket, ServerError } from '../../shared/mysql/packets.ts';
import { discardResults, type ResultSink } from '../../shared/mysql/query.ts';
import type { Control } from '../servers/pool/control.ts';
import { killStatement, killTimeoutMs } from '../servers/pool/control.ts';
import type { Session } from '../servers/pool/session.ts';
import { isTooLarge, packetTooLarge } from '../servers/pool/session.ts';
import { hasLeftSomething } from './session-questions.ts';

/** What became of one text. */
export type Answered =
  | {
      readonly kind: 'answered';
      readonly error: ServerError | null;
    }
  | { readonly kind: 'lost' };

/** Takes the results of a text, and tells whether one of its statements has changed what outlives the transaction. */
export type LeaseSink = ResultSink & { readonly hasChangedState: boolean };

/** Of COMMIT, which changes nothing that outlives the transaction, though MySQL's flags call it a change (seen on 9.7). */
export const ofTransaction: LeaseSink = { ...discardResults, hasChangedState: false };

/**
 * What became of a transaction that was ended. `no proof`: it was another one than had been begun, or none. `partial`: tables
 * without transactions were changed.
 */
export type Undone = 'rolled_back' | 'no proof' | 'partial' | 'unknown';

/** A session that the pool has granted. Whoever holds it ends the lease, and gives the session back. */
export class SessionLease {
  readonly session: Session;
  readonly #control: Control;
  readonly #onSend: () => void;
  readonly #traceparent: string | null;
  #hasChangedState = false;
  #endsClean = false;
  /** Of what runs; null: nothing does. */
  #answer: Promise<Answered> | null = null;
  #isInterrupted = false;
  #killing: Promise<void> | null = null;
  /** Destroys the connection when what follows an interruption takes too long. */
  #bound: NodeJS.Timeout | undefined;

  /**
   * @param onSend called before each text that is handed to the connection
   * @param traceparent goes with each of them; null: nothing does
   */
  constructor(session: Session, control: Control, onSend: () => void, traceparent: string | null) {
    this.#traceparent = traceparent;
    this.session = session;
    this.#control = control;
    this.#onSend = onSend;
  }

  get isLost(): boolean {
    return this.session.connection.isLost;
  }

  /** Whether the server's flags say, of all that was asked, that the session is as it was. */
  get isClean(): boolean {
    return this.#endsClean && !this.#hasChangedState && !this.isLost;
  }

  /** Sends a text and resolves when its last answer has come. Nothing is sent after an interruption. Never rejects. */
  async ask(sql: string, sink: LeaseSink): Promise<Answered> {
    const { command, answer } = this.#createCommand(sql, sink);
    if (this.#isInterrupted) return { kind: 'answered', error: null };
    if (isTooLarge(command.packet, this.session)) {
      return { kind: 'answered', error: packetTooLarge };
    }
    this.#onSend();
    this.#answer = answer;
    this.session.connection.send(command);
    const answered = await answer;
    this.#answer = null;
    this.#hasChangedState ||= sink.hasChangedState;
    this.#endsClean = answered.kind === 'answered' && answered.error === null && command.isSettled;
    await this.#killing;
    return this.isLost ? { kind: 'lost' } : answered;
  }

  /**
   * Ends the transaction, also after an interruption. `rolled_back`: the savepoint was still there, or had been released as the last
   * thing, and nothing was changed that the ROLLBACK left as it is (warning 1196).
   * @param savepoint that must be there, if nothing has ended the transaction; null: none
   */
  async rollBack(savepoint: string | null): Promise<Undone> {
    if (this.#isInterrupted) this.boundWhatFollows();
    const { connection } = this.session;
    const sink = new Warnings();
    const texts =
      savepoint === null ? ['ROLLBACK'] : [`ROLLBACK TO SAVEPOINT ${savepoint}`, 'ROLLBACK'];
    const sent = texts.map((sql) => this.#createCommand(sql, sink));
    connection.sendTogether(sent.map(({ command }) => command));
    const answers = await Promise.all(sent.map(({ answer }) => answer));
    const [first, last] = [answers[0], answers.at(-1)];
    if (first?.kind !== 'answered' || last?.kind !== 'answered') return 'unknown';
    if (last.error !== null) {
      connection.destroy(new Error('a transaction could not be rolled back'));
      return 'unknown';
    }
    if (sink.count > 0) return 'partial';
    return first.error === null ? 'rolled_back' : 'no proof';
  }

  /** Whether the server has undone the transaction itself, and not all of it could be. */
  async hasLeftSomething(): Promise<boolean> {
    return hasLeftSomething(this.session.connection).catch(() => false);
  }

  /** The statement that runs is killed, so that what was done can be undone on the same session. */
  interrupt(): void {
    this.#isInterrupted = true;
    this.boundWhatFollows();
    if (this.#killing !== null || this.#answer === null) return;
    const { session } = this;
    this.#killing = killStatement(this.#control, session, this.#answer).then((isUsable) => {
      if (!isUsable) session.connection.destroy(new Error('a batch could not be interrupted'));
    });
  }

  /** From now on there is a second, until `end`; then the connection is destroyed. */
  boundWhatFollows(): void {
    if (this.#bound !== undefined) return;
    this.#bound = setTimeout(
      () => this.session.connection.destroy(new Error('a stopped batch did not end')),
      killTimeoutMs,
    );
  }

  end(): void {
    clearTimeout(this.#bound);
  }

  #createCommand(sql: string, sink: ResultSink) {
    const { promise, resolve } = createAnswer();
    const command = this.session.createQuery(sql, this.#traceparent, sink, {
      answered: (_flagsClean, error) => resolve({ kind: 'answered', error }),
      lost: () => resolve({ kind: 'lost' }),
    });
    return { command, answer: promise };
  }
}

/** Counts warnings of ROLLBACK: something was changed outside of transactions. */
class Warnings implements ResultSink {
  count = 0;

  ok({ warnings }: OkPacket): void {
    this.count += warnings;
  }

  columns(): void {}

  tooWide(): void {}

  row(): void {}

  endOfRows(): void {}
}

function createAnswer() {
  let resolve: (answered: Answered) => void = () => {};
  const promise = new Promise<Answered>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
