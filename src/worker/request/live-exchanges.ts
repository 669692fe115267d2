// The exchanges of a worker that are not over, so that people can list and end them.
import { type Indexed, IndexedSet } from '../../shared/indexed-set.ts';
import {
  type LiveRequest,
  type LiveRequests,
  maxListedRequests,
} from '../../shared/observe/stats.ts';

/** An exchange, as it is listed. */
export interface LiveExchange extends Indexed {
  /** Its number in this worker; 0: it has not been listed yet. Written here alone. */
  liveId: number;
  /** When it began, by performance.now(). */
  readonly startedAt: number;
  /** The log's name for its request. */
  readonly requestId: string;
  /** The trace that it is part of; null: of none. */
  readonly traceId: string | null;
  describe(now: number): Omit<LiveRequest, 'id'>;
  /** Ends its statements at the request of an operator or of its client. */
  kill(): void;
}

/** All of one worker. */
export class LiveExchanges<Exchange extends LiveExchange> implements Iterable<Exchange> {
  readonly #all = new IndexedSet<Exchange>();
  #lastId = 0;

  add(exchange: Exchange): void {
    this.#all.add(exchange);
  }

  delete(exchange: Exchange): void {
    this.#all.delete(exchange);
  }

  [Symbol.iterator](): Iterator<Exchange> {
    return this.#all[Symbol.iterator]();
  }

  /** Lists the oldest, with numbers by which they can be ended. @param now performance.now() */
  list(now: number): LiveRequests {
    const all = [...this.#all].sort((left, right) => left.startedAt - right.startedAt);
    const listed = all.slice(0, maxListedRequests);
    return {
      requests: listed.map((exchange) => ({ id: this.#idOf(exchange), ...exchange.describe(now) })),
      omitted: all.length - listed.length,
    };
  }

  /** Ends the one with this number, and returns which it was; null: there is none any more. */
  kill(id: number): Pick<Exchange, 'requestId' | 'traceId'> | null {
    for (const exchange of this.#all) {
      if (exchange.liveId !== id) continue;
      exchange.kill();
      return exchange;
    }
    return null;
  }

  /** Ends all with this request id, which clients choose themselves, and returns them. */
  killAll(requestId: string): readonly Pick<Exchange, 'requestId' | 'traceId'>[] {
    const found = [...this.#all].filter((exchange) => exchange.requestId === requestId);
    for (const exchange of found) exchange.kill();
    return found;
  }

  /** Most are over before they are listed, and have no number. */
  #idOf(exchange: Exchange): number {
    if (exchange.liveId === 0) {
      this.#lastId += 1;
      exchange.liveId = this.#lastId;
    }
    return exchange.liveId;
  }
}
