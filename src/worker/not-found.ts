// The 404 of a path that is not served: the path that was probably meant, or the key of the configuration that is off.
import type { Route } from './endpoints/endpoint.ts';
import { type Failure, refusal } from './failure/failure.ts';

/** The failures of paths that are not served. None contains the path, which comes from the request. */
export type NotFound = {
  readonly of: (path: string) => Failure;
  /** The failure of a request whose token was rejected: a driver cannot know the kind of token that other paths need. */
  readonly ofUnauthorized: (path: string, failure: Failure) => Failure;
};

/** Longer paths are compared with none: the time of a comparison grows with the length. */
const maxComparedLength = 64;

const driverPrefix = '/psdb.v1alpha1.Database/';
const driversOff =
  "Drivers are not served here. To serve them, set drivers = planetscale and a token in the gateway's configuration.";

/** The paths that a key of the configuration can turn on, by their beginnings. */
const switchedOff: readonly (readonly [prefix: string, message: string])[] = [
  [driverPrefix, driversOff],
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
  return {
    of: (path) => refusal('NOT_FOUND', describe(path, findNear(path, paths))),
    ofUnauthorized: (path, failure) => {
      if (servesDrivers || !path.startsWith(driverPrefix)) return failure;
      return { ...failure, message: `${failure.message} ${driversOff}` };
    },
  };
}

/** @param near a path that is served */
function describe(path: string, near: string | null): string {
  if (near !== null) return `There is nothing at this path. Did you mean ${near}?`;
  const [, off] = switchedOff.find(([prefix]) => path.startsWith(prefix)) ?? [];
  return off ?? elsewhere;
}

/** The nearest of the paths; null: none is near. A third of the longer one may differ. */
function findNear(path: string, paths: readonly string[]): string | null {
  const asked = path.toLowerCase().replace(/(?<=.)\/+$/, '');
  if (asked.length > maxComparedLength) return null;
  let best: string | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const served of paths) {
    const distance = editDistance(asked, served.toLowerCase());
    const mayDiffer = Math.floor(Math.max(asked.length, served.length) / 3);
    if (distance > mayDiffer || distance >= least) continue;
    best = served;
    least = distance;
  }
  return best;
}

/** Counts the characters to insert, remove or replace (Levenshtein). */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const replaced = (row[j - 1] as number) + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[other.length] as number;
}
