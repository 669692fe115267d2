// The 404 of a path that is not served: the path that was probably meant, or the key of the configuration that is off.
import { findNearest } from '../shared/nearest-name.ts';
import type { Route } from './endpoints/endpoint.ts';
import { type Failure, refusal } from './failure/failure.ts';

/** The failures of paths that are not served. None contains the path, which comes from the request. */
export type NotFound = {
  readonly of: (path: string) => Failure;
  /** The failure of a request whose token was rejected: a driver cannot know the kind of token that other paths need. */
  readonly ofUnauthorized: (path: string, failure: Failure) => Failure;
};

const driverPrefix = '/psdb.v1alpha1.Database/';
const driversOff =
  "Drivers are not served here. To serve them, set drivers = planetscale and a token in the gateway's configuration.";

/** The paths that a key of the configuration can turn on, by their beginnings. */
const switchedOff: readonly (readonly [prefix: string, message: string])[] = [
  [driverPrefix, driversOff],
  [
    '/mcp',
    "Agents are not served here. To serve them, set mcp = on in the gateway's configuration.",
  ],
  [
    '/console',
    "The console is not served here: console = off in the gateway's configuration, or it was not built.",
  ],
  [
    '/health',
    'Health checks are at /livez (the process) and /readyz (the database). /health is served with compat = dbslayer.',
  ],
];

const elsewhere =
  'There is nothing at this path. SQL goes to /v1/query, /v1/batch or /db; /openapi.json lists the paths of /v1.';

/** @param routes all that is served */
export function createNotFound(routes: readonly Route[]): NotFound {
  const paths = routes
    .filter(({ path, access }) => access !== 'file' && !path.endsWith('/'))
    .map(({ path }) => path.replace('/*', '/{id}'));
  const servesDrivers = paths.some((path) => path.startsWith(driverPrefix));
  const off = switchedOff.filter(([prefix]) => !paths.some((path) => path.startsWith(prefix)));
  const describe = (path: string): string => {
    const near = findNearest(withoutSlash(path), paths);
    if (near !== null) return `There is nothing at this path. Did you mean ${near}?`;
    return off.find(([prefix]) => path.startsWith(prefix))?.[1] ?? elsewhere;
  };
  return {
    of: (path) => refusal('NOT_FOUND', describe(path)),
    ofUnauthorized: (path, failure) => {
      if (servesDrivers || !path.startsWith(driverPrefix)) return failure;
      return { ...failure, message: `${failure.message} ${driversOff}` };
    },
  };
}

function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
