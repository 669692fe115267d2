// Where among a section's servers statements are run: what whoever runs them is told, and asks.
// Must not know how a server is chosen.

import type { Indexed } from '../indexed-set.ts';
import type { Token } from '../servers/consistency/token.ts';
import type { Admission } from '../servers/pool/admission.ts';
import type { RunEnd, Unrouted } from './outcome.ts';
import type { RunContext } from './run-context.ts';

/** What decides where something may run, and whether it may be run again. */
export type RouteWish = {
  /** Declared read-only: it may run on a replica, and once more elsewhere while nothing of its reply has left. */
  readonly isReadOnly: boolean;
  /** It has a key: what was rolled back may be run once more elsewhere. */
  readonly hasKey: boolean;
  /** What the client has seen before: where, is asked first. Null: it does not say. */
  readonly after: Token | null;
  /** A replica did not show what the client has seen: the primary is asked. */
  readonly needsPrimary: boolean;
};

/** One server, as something that runs there knows it. */
export interface Route {
  readonly context: RunContext;
  /** How often the server has been looked at: more than before means that what is known of it is news. */
  readonly looks: number;
}

/** Something that runs on a route, or waits for one. */
export interface Routed extends Indexed {
  /** Whether it was declared so. */
  readonly isReadOnly: boolean;
  /** Something may have changed: a route may be there now. */
  reconsider(): void;
  /** The server that it runs on is not to be used any more. */
  leaveRoute(): void;
}

/** A section's servers. */
export interface Router {
  /** Those who wait for a server to be there, beside those in pools' queues. */
  readonly admission: Admission;
  /** How long, in ms, somebody waits for a server at most; null: until its deadline. */
  readonly mostWaitMs: number | null;
  /** Where it may run now; null: nowhere. @param isAvoided where it may not */
  choose(wish: RouteWish, isAvoided: (route: Route) => boolean): Route | null;
  /** The one with this context. */
  routeOf(context: RunContext): Route;
  /** Why there is none. */
  readonly whyNone: Unrouted;
  /** From here on it is told what happens; `forget` ends that. @param route null: it waits for one */
  remember(routed: Routed, route: Route | null): void;
  forget(routed: Routed): void;
  /** What became of something on a route may tell of its server. */
  ended(route: Route, end: RunEnd, wish: Pick<RouteWish, 'isReadOnly'>): void;
}
