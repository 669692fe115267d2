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

  /** Sends a request after those before it, with the token in its headers. Rejects as `send` does. */
  carry(headers: Record<string, string>, send: () => Promise<Response>): Promise<Response> {
    const reply = this.#before.then(async () => {
      if (this.#token !== null) headers[header] = this.#token;
      const response = await send();
      this.#note(response.headers);
      return response;
    });
    this.#before = reply.catch(() => undefined);
    return reply;
  }

  #note(headers: Headers): void {
    this.#token = headers.get(header) ?? this.#token;
    this.#isVerified = headers.get('X-Consistency') !== 'unverified';
  }
}
