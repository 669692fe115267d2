// A transaction that the client holds while the caller's function runs: begun, used, and committed or rolled back.
import { DbhttpdError, type ErrorFacts, type Outcome } from './error.ts';
import {
  checkNames,
  encodeFields,
  type InnerOptions,
  innerNames,
  type QueryOptions,
  retriesOf,
  type TransactionOptions,
} from './options.ts';
import { mayEndAgain, repeat, toSent, withRetries } from './request.ts';
import type { Told } from './results.ts';
import {
  type Asked,
  type Query,
  runQuery,
  runStream,
  type Stream,
  toStatement,
} from './statement.ts';
import { type Connection, noReplyOfOurs, readJson, sendRequest } from './transport.ts';

/** A transaction as the caller's function uses it, until that function ends. */
export type Transaction = {
  readonly query: Query<InnerOptions>;
  readonly stream: Stream<InnerOptions>;
};

/** Runs a function in a transaction, and resolves to its value once that is committed. */
export type RunInTransaction = <Value>(
  work: (tx: Transaction) => Promise<Value>,
  options?: TransactionOptions,
) => Promise<Value>;

/** How the caller's function has ended. */
type Done<Value> =
  | { readonly kind: 'returned'; readonly value: Value }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'aborted' };

/** For a rollback's reply nobody waits longer: the gateway ends by itself what lies idle. */
const rollbackWithinMs = 10_000;

/**
 * Begins a transaction, has `work` done in it, and commits it. Whatever `work` throws is thrown again, once the transaction was rolled
 * back. Throws a DbhttpdError where the transaction cannot be begun or committed, and where the signal has ended it.
 */
export async function runTransaction<Value>(
  connection: Connection,
  work: (tx: Transaction) => Promise<Value>,
  options: TransactionOptions,
): Promise<Value> {
  const held = new HeldTransaction(connection, await begin(connection, options), options);
  const done = await perform(work, held.tx, options.signal);
  held.close();
  if (done.kind === 'threw') {
    await held.rollBack();
    throw done.error;
  }
  if (done.kind === 'returned') await held.answered();
  const { signal } = options;
  if (done.kind === 'aborted' || signal?.aborted === true) {
    throw aborted(await held.rollBack(), signal?.reason);
  }
  await held.commit();
  return done.value;
}

/** BEGIN changes nothing: where its reply is lost, the gateway ends what lies idle. */
async function begin(connection: Connection, options: TransactionOptions): Promise<string> {
  const body = encodeFields({
    isolation: options.isolation,
    read_only: options.readOnly,
    timeout_ms: options.timeoutMs,
    section: options.section,
  });
  const sent = toSent('/v1/transaction', body, { ...options, readOnly: true });
  return await repeat(sent, options, async () => {
    const begun = await sendRequest(connection, sent);
    const { transaction } = (await readJson(begun, sent)) as Told;
    if (typeof transaction !== 'string') throw noReplyOfOurs(begun.response, sent);
    return transaction;
  });
}

/** Never rejects. Who aborts does not wait for a function that waits for something else. */
async function perform<Value>(
  work: (tx: Transaction) => Promise<Value>,
  tx: Transaction,
  signal: AbortSignal | undefined,
): Promise<Done<Value>> {
  let leave = () => {};
  const left = new Promise<Done<Value>>((resolve) => {
    leave = () => resolve({ kind: 'aborted' });
  });
  if (signal?.aborted === true) return { kind: 'aborted' };
  signal?.addEventListener('abort', leave, { once: true });
  const worked = Promise.resolve(tx)
    .then(work)
    .then(
      (value): Done<Value> => ({ kind: 'returned', value }),
      (error: unknown): Done<Value> => ({ kind: 'threw', error }),
    );
  const done = await Promise.race([left, worked]);
  signal?.removeEventListener('abort', leave);
  return done;
}

/** One that was begun. Whoever has it commits it, or rolls it back. */
class HeldTransaction {
  readonly #connection: Connection;
  readonly #token: string;
  readonly #options: TransactionOptions;
  #isOver = false;
  /** Settles when all statements before have been answered; never rejects. */
  #before: Promise<unknown> = Promise.resolve();

  constructor(connection: Connection, token: string, options: TransactionOptions) {
    this.#connection = connection;
    this.#token = token;
    this.#options = options;
  }

  /** For the caller's function. Its methods may be taken from it. */
  get tx(): Transaction {
    const query = async (statement: unknown, ...rest: readonly unknown[]) => {
      const { asked, options } = this.#choose(statement, rest);
      return await this.#inTurn(() => runQuery(this.#connection, asked, options, this.#token));
    };
    const begin = (statement: unknown, rest: readonly unknown[]) => {
      const { asked, options } = this.#choose(statement, rest);
      return runStream(this.#connection, asked, options, this.#token);
    };
    const answered = () => this.answered();
    async function* stream(statement: unknown, ...rest: readonly unknown[]) {
      await answered();
      return yield* begin(statement, rest);
    }
    return { query: query as Query<InnerOptions>, stream: stream as Stream<InnerOptions> };
  }

  /** Nothing more is taken from the caller's function. */
  close(): void {
    this.#isOver = true;
  }

  /** Resolves when the statements that were asked for have been answered, one way or the other. */
  async answered(): Promise<void> {
    await this.#before;
  }

  /** COMMIT, asked for until it is known what became of it. What was certainly not committed is rolled back. Throws a DbhttpdError. */
  async commit(): Promise<void> {
    try {
      const isAnswer = ({ committed }: Told) => committed === true;
      await this.#end('commit', this.#options, isAnswer, mayEndAgain);
    } catch (error) {
      if (error instanceof DbhttpdError && error.outcome === 'not_executed') await this.rollBack();
      throw error;
    }
  }

  /** Resolves to what became of the transaction; never rejects. */
  async rollBack(): Promise<Outcome> {
    const options = { ...this.#options, signal: AbortSignal.timeout(rollbackWithinMs) };
    try {
      const told = await this.#end('rollback', options, isRollback, mayRollBackAgain);
      if (told.rolled_back === true) return 'rolled_back';
      return told.outcome === 'partial' ? 'partial' : 'unknown';
    } catch {
      return 'unknown';
    }
  }

  /** Either end may be asked for again: what is over is told how it has ended. */
  async #end(
    verb: 'commit' | 'rollback',
    options: TransactionOptions,
    isAnswer: (told: Told) => boolean,
    mayRepeat: typeof mayEndAgain,
  ): Promise<Told> {
    const body = encodeFields({ transaction: this.#token, timeout_ms: options.timeoutMs });
    const sent = toSent(`/v1/transaction/${verb}`, body, options);
    return await withRetries(retriesOf(options), mayRepeat, sent.signal, async () => {
      const begun = await sendRequest(this.#connection, sent);
      const told = (await readJson(begun, sent)) as Told;
      if (!isAnswer(told)) throw noReplyOfOurs(begun.response, sent);
      return told;
    });
  }

  /** What a statement is, and how it is asked. Throws where the transaction is over, and a TypeError for what cannot be asked. */
  #choose(statement: unknown, rest: readonly unknown[]): { asked: Asked; options: QueryOptions } {
    if (this.#isOver) throw transactionOver();
    const asked = toStatement(statement, rest);
    checkNames(asked.options, innerNames, 'option of a statement in a transaction');
    return { asked, options: { ...this.#options, ...asked.options } };
  }

  /** In the order in which they were asked for, which connections of their own would not keep. */
  #inTurn<Reply>(ask: () => Promise<Reply>): Promise<Reply> {
    const reply = this.#before.then(ask);
    this.#before = reply.catch(() => undefined);
    return reply;
  }
}

const isRollback = ({ rolled_back: told }: Told) => typeof told === 'boolean';

/** A rollback that waits while the gateway itself ends the transaction is refused as a statement is, and answered the next time. */
const mayRollBackAgain = (error: DbhttpdError) => mayEndAgain(error, true);

function transactionOver(): DbhttpdError {
  return new DbhttpdError(
    'The transaction is over: its function has ended, or was aborted. The statement was not sent.',
    { code: 'TRANSACTION_ENDED', outcome: 'not_executed', retryable: false },
  );
}

/** @param outcome of the rollback */
function aborted(outcome: Outcome, cause: unknown): DbhttpdError {
  const what = outcome === 'rolled_back' ? 'rolled back' : 'not committed';
  const facts: ErrorFacts = {
    code: 'ABORTED',
    outcome,
    retryable: outcome === 'rolled_back',
    cause,
  };
  return new DbhttpdError(`The transaction was aborted. It was ${what}.`, facts);
}
