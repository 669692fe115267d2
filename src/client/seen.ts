// One reader's consistency token, carried from each reply to the next request.

const header = 'X-Consistency-Token';

/**
 * One reader's token. A request with it sees at least what earlier requests with it saw and wrote, whichever server answers. Each request
 * waits for the head of the reply before it, since a token covers only earlier requests.
 */
export class Seen {
  #token: string | null;
  #isVerified = true;
  #before: Promise<unknown> = Promise.resolve();

  /** @param token the token of another reader or an earlier page; null: nothing has been seen */
  constructor(token: string | null = null) {
    if (token !== null && !/^[\x21-\x7e]+$/.test(token)) {
      throw new TypeError('a consistency token must be visible ASCII characters');
    }
    this.#token = token;
  }

  /** The token for a `Seen` elsewhere; null: nothing has been seen, or the gateway has one server. */
  get token(): string | null {
    return this.#token;
  }

  /** False: the gateway could not verify that the latest reply showed everything seen before. */
  get isVerified(): boolean {
    return this.#isVerified;
  }

  /** Starts again without a token, for example after `TOKEN_LOST`. */
  forget(): void {
    this.#token = null;
    this.#isVerified = true;
  }

  /**
   * Sends a request after those before it, with the token in its headers. Rejects as `send` does.
   * @param signal if it aborts, the request does not wait for its turn any more: `send` must then reject, and send nothing
   */
  carry(
    headers: Record<string, string>,
    signal: AbortSignal | null,
    send: () => Promise<Response>,
  ): Promise<Response> {
    const before = this.#before;
    const reply = turnOrAbort(before, signal).then(async () => {
      if (this.#token !== null) headers[header] = this.#token;
      const response = await send();
      this.#note(response.headers);
      return response;
    });
    // Those behind a request that was aborted still wait for the reply before it.
    this.#before = reply.then(
      () => undefined,
      () => before,
    );
    return reply;
  }

  #note(headers: Headers): void {
    this.#token = headers.get(header) ?? this.#token;
    this.#isVerified = headers.get('X-Consistency') !== 'unverified';
  }
}

/** Waits for a promise that never rejects, or until the signal aborts. */
function turnOrAbort(turn: Promise<unknown>, signal: AbortSignal | null): Promise<unknown> {
  if (signal === null) return turn;
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const go = () => {
      signal.removeEventListener('abort', go);
      resolve(undefined);
    };
    signal.addEventListener('abort', go);
    void turn.then(go);
  });
}
