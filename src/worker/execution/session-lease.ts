// A session that runs several statements one after another, and can interrupt and undo them.
import {
  fetchRows,
  fetchStatistics,
  runTogether,
  statementCommand,
} from '../../shared/mysql/commands.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import type { OkPacket, ServerError } from '../../shared/mysql/packets.ts';
import { discardResults, type ResultSink, refuseRows } from '../../shared/mysql/query.ts';
import type { Control } from '../servers/pool/control.ts';
import { killStatement, killTimeoutMs } from '../servers/pool/control.ts';
import type { Session } from '../servers/pool/session.ts';
import { isTooLarge, packetTooLarge } from '../servers/pool/session.ts';
import type { ServerFacts } from './execution.ts';

/** The answer to one text. */
export type Answered =
  | {
      readonly kind: 'answered';
      readonly error: ServerError | null;
    }
  | { readonly kind: 'lost' };

/** Takes the results of a text, and says whether a statement has changed something that outlives the transaction. */
export type LeaseSink = ResultSink & { readonly hasChangedState: boolean };

/** For BEGIN and COMMIT: they change nothing in the session, although MySQL's flags call it a change (seen on 9.7). */
export const ofTransaction: LeaseSink = {
  ...discardResults,
  columns: refuseRows,
  tooWide: refuseRows,
  hasChangedState: false,
};

/**
 * The end of a transaction that was undone. `no proof`: it was not the one that had been begun, or there was none. `partial`: tables
 * without transactions were changed.
 */
export type Undone = 'rolled_back' | 'no proof' | 'partial' | 'unknown';

/** A session that the pool has granted. Its owner ends the lease, and releases the session. */
export class SessionLease {
  readonly session: Session;
  readonly #control: Control;
  readonly #onSend: () => void;
  readonly #traceparent: string | null;
  #hasChangedState = false;
  #endsClean = false;
  /** The answer of the statement that runs; null: none runs. */
  #answer: Promise<Answered> | null = null;
  #isInterrupted = false;
  #killing: Promise<void> | null = null;
  /** Destroys the connection if the work after an interruption takes too long. */
  #bound: NodeJS.Timeout | undefined;

  /**
   * @param onSend called before each text that is handed to the connection
   * @param traceparent sent with each of them; null: the request is part of no trace
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

  /** Whether the server's flags show that no text has changed the session. */
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
   * Ends the transaction, also after an interruption. `rolled_back`: the savepoint was still there, or had been released last, and
   * nothing was changed that a ROLLBACK does not undo (warning 1196).
   * @param savepoint must exist, unless something has ended the transaction; null: there is none
   */
  async rollBack(savepoint: string | null): Promise<Undone> {
    if (this.#isInterrupted) this.boundWhatFollows();
    const { connection } = this.session;
    let warnings = 0;
    const countWarnings = (ok: OkPacket) => {
      warnings += ok.warnings;
    };
    const sink: ResultSink = { ...discardResults, ok: countWarnings };
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
    // Something was changed outside of transactions.
    if (warnings > 0) return 'partial';
    return first.error === null ? 'rolled_back' : 'no proof';
  }

  /** Whether the server has undone the transaction by itself, but not all of it. */
  async hasLeftSomething(): Promise<boolean> {
    return hasLeftSomething(this.session.connection).catch(() => false);
  }

  /** Kills the statement that runs, so that the transaction can be undone on the same session. */
  interrupt(): void {
    this.#isInterrupted = true;
    this.boundWhatFollows();
    if (this.#killing !== null || this.#answer === null) return;
    const { session } = this;
    this.#killing = killStatement(this.#control, session, this.#answer).then((isUsable) => {
      if (!isUsable) session.connection.destroy(new Error('a batch could not be interrupted'));
    });
  }

  /** Destroys the connection in a second, unless `end` is called before. */
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

function createAnswer() {
  let resolve: (answered: Answered) => void = () => {};
  const promise = new Promise<Answered>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** ER_WARNING_NOT_COMPLETE_ROLLBACK */
const notAllUndone = '1196';

/** Whether the last ROLLBACK has left changes in tables without transactions. Rejects when the connection is lost. */
async function hasLeftSomething(connection: Connection): Promise<boolean> {
  const rows = await fetchRows(connection, 'SHOW WARNINGS');
  return rows.some(([, code]) => code === notAllUndone);
}

/**
 * Ends the transaction that a failed statement may have left open. Returns whether changes in tables without transactions remain. Rejects
 * when the transaction may still be open.
 */
export async function rollBack(connection: Connection): Promise<{ readonly hasLeft: boolean }> {
  // After a deadlock the server has rolled back already, and has reported it then.
  const hadLeft = await hasLeftSomething(connection);
  await runTogether(connection, [statementCommand('ROLLBACK', connection)]);
  return { hasLeft: hadLeft || (await hasLeftSomething(connection)) };
}

/** Asks the server for its statistics. Rejects when the connection is lost. */
export async function askServer(connection: Connection): Promise<ServerFacts> {
  const statistics = await fetchStatistics(connection);
  return { statistics, serverVersion: connection.serverVersion };
}
