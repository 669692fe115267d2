// Calls between two processes that have a channel: a question, its answer, and the callers that wait for it.

/** The questions by name, each with what is sent and what comes back. */
export type CallTable = {
  readonly [name: string]: { readonly asked: unknown; readonly answer: unknown };
};

/** A question on its way. */
export type Call<Table extends CallTable> = {
  [Name in keyof Table]: {
    readonly kind: 'call';
    readonly id: number;
    readonly name: Name;
    readonly asked: Table[Name]['asked'];
  };
}[keyof Table];

/** An answer on its way back. Null: there is none. */
export type Answer<Table extends CallTable> = {
  readonly kind: 'answer';
  readonly id: number;
  readonly answer: Table[keyof Table]['answer'] | null;
};

/** The function that answers each question. */
export type Answerers<Table extends CallTable> = {
  readonly [Name in keyof Table]: (
    asked: Table[Name]['asked'],
  ) => Table[Name]['answer'] | Promise<Table[Name]['answer']>;
};

/** Asks another process, and keeps the callers that wait for answers. */
export class Caller<Table extends CallTable> {
  readonly #send: (call: Call<Table>) => void;
  readonly #boundMs: number;
  readonly #waiting = new Map<number, (answer: Table[keyof Table]['answer'] | null) => void>();
  #lastId = 0;

  /** @param boundMs how long an answer may take */
  constructor(send: (call: Call<Table>) => void, boundMs: number) {
    this.#send = send;
    this.#boundMs = boundMs;
  }

  /** Resolves with the answer, or with null if none comes in time. Never rejects. */
  ask<Name extends keyof Table>(
    name: Name,
    asked: Table[Name]['asked'],
  ): Promise<Table[Name]['answer'] | null> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#end(id, null), this.#boundMs);
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      this.#send({ kind: 'call', id, name, asked });
    });
  }

  /** Takes an answer. Ignores one that comes too late. */
  answered({ id, answer }: Answer<Table>): void {
    this.#end(id, answer);
  }

  /** Ends all waiting, because the other process is gone. */
  abandon(): void {
    for (const id of [...this.#waiting.keys()]) this.#end(id, null);
  }

  #end(id: number, answer: Table[keyof Table]['answer'] | null): void {
    const resolve = this.#waiting.get(id);
    this.#waiting.delete(id);
    resolve?.(answer);
  }
}

/**
 * Answers a call. Calls `send` once, later, and never rejects.
 * @param onFault gets an exception, which ends the call without an answer
 */
export async function answerCall<Table extends CallTable>(
  answerers: Answerers<Table>,
  { id, name, asked }: Call<Table>,
  send: (answer: Answer<Table>) => void,
  onFault: (name: keyof Table, cause: unknown) => void,
): Promise<void> {
  let answer: Table[keyof Table]['answer'] | null = null;
  try {
    answer = await answerers[name](asked);
  } catch (cause) {
    onFault(name, cause);
  }
  send({ kind: 'answer', id, answer });
}
