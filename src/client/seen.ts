// What a reader has seen: the gateway's consistency token, carried from reply to request.

const header = 'X-Consistency-Token';

/**
 * One reader's token. Requests that are given it see at least what its earlier requests have seen and written, whichever server answers. Each waits
 * until the one before has its reply's head, since a token tells of those before it alone.
 */
export class Seen {
  #token: string | null;
  #isVerified = true;
  #before: Promise<unknown> = Promise.resolve();

  /** @param token where another reader, or an earlier page of this one, has come to; null: nothing has been seen */
  constructor(token: string | null = null) {
    if (token !== null && !/^[\x21-\x7e]+$/.test(token)) {
      throw new TypeError('a consistency token is visible ASCII characters');
    }
    this.#token = token;
  }

  /** To be handed over, to a `Seen` elsewhere; null: nothing has been seen, or the gateway has one server. */
  get token(): string | null {
    return this.#token;
  }

  /** False: of the latest reply it cannot be told whether it showed all that had been seen before. */
  get isVerified(): boolean {
    return this.#isVerified;
  }

  /** Begins anew, as after `TOKEN_LOST`. */
  forget(): void {
    this.#token = null;
    this.#isVerified = true;
  }

  /** Has a request sent in its turn, with the token among its headers. Rejects as `send` does. */
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
