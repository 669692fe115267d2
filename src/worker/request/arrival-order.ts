// The order of requests that name the same transaction. A long request is decided in pieces, and a short one that comes after it at once:
// the short one must wait, or it would run first.

const field = '"transaction"';
/** The rest of the member. JSON does not escape the characters of a token. */
const tokenBehind = /^[ \t\r\n]*:[ \t\r\n]*"([\w-]+)"/;
/** A token has 47 characters. */
const longestMember = 128;
/** A request has one such field. More of them are parameters, or an attempt to keep the worker busy. */
const maxNamed = 8;

/** The transactions that a long body may name. A body that is not the usual JSON names none, and keeps no order. */
export function findNamed(body: Buffer): ReadonlySet<string> {
  const named = new Set<string>();
  let at = body.indexOf(field);
  for (let count = 0; at >= 0 && count < maxNamed; count += 1) {
    const from = at + field.length;
    const [, token] = tokenBehind.exec(body.toString('latin1', from, from + longestMember)) ?? [];
    if (token !== undefined) named.add(token);
    at = body.indexOf(field, from);
  }
  return named;
}

/** A request that is not carried out yet. Its owner must leave; twice does nothing. */
export type Arrival = {
  readonly named: ReadonlySet<string>;
  /** Resolves when it has left. */
  readonly left: Promise<void>;
  readonly leave: () => void;
};

/** The requests of a worker that are not carried out yet, and may name a transaction. */
export class ArrivalOrder {
  /** In the order of their arrival. */
  readonly #arrivals = new Set<Arrival>();

  /** From now on requests that name one of these transactions wait for this one. */
  enter(named: ReadonlySet<string>): Arrival {
    let resolve = () => {};
    const left = new Promise<void>((settle) => {
      resolve = settle;
    });
    const arrival: Arrival = {
      named,
      left,
      leave: () => {
        this.#arrivals.delete(arrival);
        resolve();
      },
    };
    if (named.size > 0) this.#arrivals.add(arrival);
    return arrival;
  }

  /** The requests that a request with this token must wait for. @param own where it stands itself; null: behind all others */
  before(token: string, own: Arrival | null): readonly Arrival[] {
    if (this.#arrivals.size === 0) return [];
    const all = [...this.#arrivals];
    const end = own === null ? -1 : all.indexOf(own);
    const earlier = end < 0 ? all : all.slice(0, end);
    return earlier.filter(({ named }) => named.has(token));
  }
}
