// The table of all that is served: path, methods, who may ask, who answers.
// Must not know how any of them answers.
import type { Rules } from '../http/compat.ts';
import type { Handler, Route } from '../http/router.ts';
import { createHealth, createMetrics, createReadyz, livez, type ReadyAnswer } from './watching.ts';

/** What the endpoints are made of. */
export type Answers = {
  readonly db: Handler;
  /** Whether this worker can serve what a client needs. */
  readonly askReady: () => Promise<ReadyAnswer>;
  /** The metrics of all workers as Prometheus text. */
  readonly scrape: () => Promise<string>;
};

type Line = Omit<Route, 'path' | 'handle'>;

/** Creates the table of one worker. */
export function createRoutes(rules: Rules, { db, askReady, scrape }: Answers): readonly Route[] {
  const sql: Line = {
    endpoint: 'db',
    methods: ['GET', 'POST'],
    access: 'guarded',
    isEssential: false,
    endsConnection: rules.repliesEndConnection,
  };
  const watched = (endpoint: Line['endpoint'], access: Line['access']): Line => {
    const methods = ['GET', 'HEAD'];
    return { endpoint, methods, access, isEssential: true, endsConnection: false };
  };
  const readyz = { ...watched('readyz', 'open'), path: '/readyz', handle: createReadyz(askReady) };
  const health = { ...watched('health', 'open'), path: '/health', handle: createHealth(askReady) };
  return [
    { ...sql, path: '/db', handle: db },
    { ...sql, path: '/db/', handle: db },
    { ...watched('livez', 'open'), path: '/livez', handle: livez },
    readyz,
    { ...watched('metrics', 'guarded'), path: '/metrics', handle: createMetrics(scrape) },
    ...(rules.hasHealth ? [health] : []),
  ];
}
