// Has something run where that may be now: on a section's one server, or on one of several.
// Must not know what is run.
import type { Admission } from '../servers/pool/admission.ts';
import type { Server } from '../servers/server.ts';
import type { Routed, Servers } from '../servers/servers.ts';
import type { Execution } from './execution.ts';
import type { RunEnd } from './outcome.ts';
import { RoutedRun, type RouteWish } from './routed-run.ts';
import type { RunContext } from './run-context.ts';
import type { RunEvents } from './run-events.ts';
import type { RunTimes } from './run-times.ts';
import { endTellsOfServer } from './server-errors.ts';

/** Creates what runs on one server. */
export type CreateRun = (context: RunContext, events: RunEvents) => Execution;

/** A section's servers, as far as whoever has something run needs to know. */
export type Launcher = {
  /** The places of those who wait, and are not in the queue of a server's pool. */
  readonly admission: Admission;
  /** Creates a run that its owner must start. */
  readonly launch: (
    wish: RouteWish,
    create: CreateRun,
    events: RunEvents,
    times: RunTimes,
  ) => Execution;
  /** From here on something that runs in that context is told when its server is not to be used any more; `forget` ends that. */
  readonly remember: (routed: Routed, context: RunContext) => void;
  readonly forget: (routed: Routed) => void;
  /** Tells how something has ended that ran in that context, and was not launched here: its server may have changed its part. */
  readonly ended: (context: RunContext, end: RunEnd, wish: Pick<RouteWish, 'isReadOnly'>) => void;
};

/** Where there is one server. */
export function launchOn(context: RunContext): Launcher {
  return {
    admission: context.pool.admission,
    launch: (_wish, create, events) => create(context, events),
    remember: () => {},
    forget: () => {},
    ended: () => {},
  };
}

/** Where there are several. */
export function launchAmong(servers: Servers, contexts: ReadonlyMap<Server, RunContext>): Launcher {
  return {
    admission: servers.admission,
    launch: (wish, create, events, times) => {
      const createOn = (server: Server, to: RunEvents) =>
        create(contexts.get(server) as RunContext, to);
      return new RoutedRun(servers, wish, createOn, events, times);
    },
    remember: (routed, { server }) => servers.remember(routed, server),
    forget: (routed) => servers.forget(routed),
    ended: ({ server }, end, { isReadOnly }) => {
      if (endTellsOfServer(end, isReadOnly)) servers.suspect(server);
    },
  };
}
