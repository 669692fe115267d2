// The exchanges of a worker that are not over, so that people can list and end them.
import type { RequestOwner } from '../../shared/clients/caller.ts';
import { type Indexed, IndexedSet } from '../../shared/indexed-set.ts';
import { hasClaims, type OwnClaims } from '../../shared/named/own-claims.ts';
import {
  type LiveRequest,
  type LiveRequests,
  maxListedRequests,
} from '../../shared/observe/stats.ts';
import type { KilledRequests } from '../../shared/process/messages.ts';

/** An exchange, as it is listed. */
export interface LiveExchange extends Indexed {
  /** Its number in this worker; 0: it has not been listed yet. Written here alone. */
  liveId: number;
  /** When it began, by performance.now(). */
  readonly startedAt: number;
  /** The log's name for its request. */
  readonly requestId: string;
  /** `owner` of its caller. */
  readonly owner: string;
  /** The client's name. */
  readonly client: string;
  /** The user of the client, for logs; null: there is none. */
  readonly user: string | null;
  /** The claims that its statements bind: it belongs to callers who have them too. */
  readonly ownClaims: OwnClaims;
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

  /**
   * Lists the oldest, with numbers by which they can be ended.
   * @param now performance.now()
   * @param owner whose; null: all
   */
  list(now: number, owner: RequestOwner | null = null): LiveRequests {
    const all = [...this.#all].filter((one) => owner === null || isOwn(one, owner));
    all.sort((left, right) => left.startedAt - right.startedAt);
    const listed = all.slice(0, maxListedRequests);
    return {
      requests: listed.map((exchange) => ({ id: this.#idOf(exchange), ...exchange.describe(now) })),
      omitted: all.length - listed.length,
    };
  }

  /** Ends some, and returns which: those that are over are not among them. */
  kill(
    asked: KilledRequests,
  ): readonly Pick<Exchange, 'requestId' | 'traceId' | 'client' | 'user'>[] {
    const found = [...this.#all].filter((exchange) => isAsked(exchange, asked));
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

function isOwn({ owner, ownClaims }: LiveExchange, asked: RequestOwner): boolean {
  return owner === asked.owner && hasClaims(asked.claims, ownClaims);
}

function isAsked(exchange: LiveExchange, asked: KilledRequests): boolean {
  const { liveId, requestId } = exchange;
  switch (asked.by) {
    case 'number': {
      const isThis = liveId === asked.number && liveId !== 0;
      return isThis && (asked.owner === null || isOwn(exchange, asked.owner));
    }
    case 'request id':
      return requestId === asked.requestId && isOwn(exchange, asked.owner);
    default:
      return asked satisfies never;
  }
}
