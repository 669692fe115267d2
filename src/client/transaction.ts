// A transaction that is open while the caller's function runs: its begin, its statements, and its commit or rollback.
import { DbhttpdError, type ErrorFacts, type Outcome } from './error.ts';
import {
  createHeldNamed,
  type HeldNamedFunctions,
  type ModeOf,
  type NamedCall,
  type NamedStatements,
  runNamed,
  streamNamed,
} from './named.ts';
import {
  type BigintMode,
  checkNames,
  encodeFields,
  heldNamedNames,
  type InnerOptions,
  innerNames,
  type QueryOptions,
  retriesOf,
  type TransactionOptions,
} from './options.ts';
import { mayEndAgain, repeat, toSent, withRetries } from './request.ts';
import {
  type Asked,
  exactlyOneRow,
  type MaybeOne,
  type One,
  onlyRow,
  type Query,
  runQuery,
  runStream,
  type Stream,
  toStatement,
} from './statement.ts';
import {
  type Connection,
  type JsonObject,
  noReplyOfOurs,
  readJson,
  sendRequest,
} from './transport.ts';

/** A transaction as the caller's function uses it, until that function ends. */
export type Transaction<
  Named extends NamedStatements<Named> = Record<never, never>,
  Mode extends BigintMode = 'string',
> = {
  readonly query: Query<InnerOptions>;
  readonly one: One<InnerOptions>;
  readonly maybeOne: MaybeOne<InnerOptions>;
  readonly stream: Stream<InnerOptions>;
  /** A function for each named statement that is no transaction of its own. */
  readonly named: HeldNamedFunctions<Named, Mode>;
};

/** Runs a function in a transaction, and resolves to its value once the transaction is committed. */
export type RunInTransaction<
  Named extends NamedStatements<Named> = Record<never, never>,
  Default extends BigintMode = 'string',
> = <Value, const Mode extends BigintMode | undefined = Default>(
  work: (tx: Transaction<Named, ModeOf<Mode>>) => Promise<Value>,
  options?: Omit<TransactionOptions, 'bigint'> & { readonly bigint?: Mode },
) => Promise<Value>;

/** How the caller's function has ended. */
type Done<Value> =
  | { readonly kind: 'returned'; readonly value: Value }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'aborted' };

/** The client waits no longer for the reply to a rollback: the gateway ends idle transactions by itself. */
const rollbackWithinMs = 10_000;

/**
 * Begins a transaction, runs `work` in it, and commits it. If `work` throws, the transaction is rolled back and the error thrown again.
 * Throws a DbhttpdError if the transaction cannot begin or commit, or if the signal aborts it.
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

/** BEGIN changes nothing: if its reply is lost, the gateway ends the idle transaction. */
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
    const { transaction } = await readJson(begun, sent);
    if (typeof transaction !== 'string') throw noReplyOfOurs(begun, sent);
    return transaction;
  });
}

/** Never rejects. After an abort it does not wait for the function. */
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

/** An open transaction. Its owner commits it or rolls it back. */
class HeldTransaction {
  readonly #connection: Connection;
  readonly #token: string;
  readonly #options: TransactionOptions;
  #isOver = false;
  /** Settles when all earlier statements have been answered; never rejects. */
  #before: Promise<unknown> = Promise.resolve();

  constructor(connection: Connection, token: string, options: TransactionOptions) {
    this.#connection = connection;
    this.#token = token;
    this.#options = options;
  }

  /** The object for the caller's function, which may destructure it. */
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
    const one = async (statement: unknown, ...rest: readonly unknown[]) =>
      exactlyOneRow(await query(statement, ...rest));
    const maybeOne = async (statement: unknown, ...rest: readonly unknown[]) =>
      onlyRow(await query(statement, ...rest));
    const run = async (call: NamedCall) => {
      const chosen = this.#chooseNamed(call);
      return await this.#inTurn(() => runNamed(this.#connection, chosen, this.#token));
    };
    const beginNamed = (call: NamedCall) =>
      streamNamed(this.#connection, this.#chooseNamed(call), this.#token);
    async function* streamOfNamed(call: NamedCall) {
      await answered();
      return yield* beginNamed(call);
    }
    return {
      named: createHeldNamed({ call: run, stream: streamOfNamed }),
      query: query as Query<InnerOptions>,
      one: one as One<InnerOptions>,
      maybeOne: maybeOne as MaybeOne<InnerOptions>,
      stream: stream as Stream<InnerOptions>,
    };
  }

  /** Rejects further statements of the caller's function. */
  close(): void {
    this.#isOver = true;
  }

  /** Resolves when all statements so far have succeeded or failed. */
  async answered(): Promise<void> {
    await this.#before;
  }

  /** Asks for COMMIT until its outcome is known. Rolls back if it was certainly not committed. Throws a DbhttpdError. */
  async commit(): Promise<void> {
    try {
      const isAnswer = ({ committed }: JsonObject) => committed === true;
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
      const json = await this.#end('rollback', options, isRollback, mayRollBackAgain);
      if (json.rolled_back === true) return 'rolled_back';
      return json.outcome === 'partial' ? 'partial' : 'unknown';
    } catch {
      return 'unknown';
    }
  }

  /** Either end may be asked for again: for a transaction that is over, the gateway reports how it ended. */
  async #end(
    verb: 'commit' | 'rollback',
    options: TransactionOptions,
    isAnswer: (json: JsonObject) => boolean,
    mayRepeat: typeof mayEndAgain,
  ): Promise<JsonObject> {
    const body = encodeFields({ transaction: this.#token, timeout_ms: options.timeoutMs });
    const sent = toSent(`/v1/transaction/${verb}`, body, options);
    return await withRetries(retriesOf(options), mayRepeat, sent.signal, async () => {
      const begun = await sendRequest(this.#connection, sent);
      const json = await readJson(begun, sent);
      if (!isAnswer(json)) throw noReplyOfOurs(begun, sent);
      return json;
    });
  }

  /** Reads a statement and its options. Throws if the transaction is over, and a TypeError for an invalid call. */
  #choose(statement: unknown, rest: readonly unknown[]): { asked: Asked; options: QueryOptions } {
    if (this.#isOver) throw transactionOver();
    const asked = toStatement(statement, rest);
    checkNames(asked.options, innerNames, 'option of a statement in a transaction');
    return { asked, options: { ...this.#options, ...asked.options } };
  }

  /** The same for a named statement. */
  #chooseNamed(call: NamedCall): NamedCall {
    if (this.#isOver) throw transactionOver();
    checkNames(call.options, heldNamedNames, 'option of a named statement in a transaction');
    return { ...call, options: { ...this.#options, ...call.options } };
  }

  /** Sends statements in the order of the calls, which parallel connections would not keep. */
  #inTurn<Reply>(ask: () => Promise<Reply>): Promise<Reply> {
    const reply = this.#before.then(ask);
    this.#before = reply.catch(() => undefined);
    return reply;
  }
}

const isRollback = ({ rolled_back: answer }: JsonObject) => typeof answer === 'boolean';

/** If the gateway is ending the transaction itself, it first rejects a rollback as it rejects a statement, and answers the next one. */
const mayRollBackAgain = (error: DbhttpdError) => mayEndAgain(error, true);

function transactionOver(): DbhttpdError {
  return new DbhttpdError(
    'The transaction is over: its function has ended, or was aborted. The statement was not sent.',
    { code: 'TRANSACTION_ENDED', outcome: 'not_executed', retryable: false },
  );
}

/** @param outcome the rollback's */
function aborted(outcome: Outcome, cause: unknown): DbhttpdError {
  const what = outcome === 'rolled_back' ? 'rolled back' : 'not committed';
  const facts: ErrorFacts = {
    code: 'ABORTED',
    outcome,
    retryable: false,
    cause,
  };
  return new DbhttpdError(`The transaction was aborted. It was ${what}.`, facts);
}
