// How far V8's young generation may grow, in each kind of process.
// Must not know how they are started.

/**
 * V8's own limit is 3 × 16 MiB, which memory under load reaches and keeps: most of what eight downloads of
 * 25 MB at once add to a worker. Too small, and requests in flight survive collections: on one
 * worker a point query cost 30 µs at 2 MiB and 20 at 8 with 64 clients, 33 and 25 with 256.
 */
export const workerYoungGeneration = '--max-semi-space-size=8';

/** A supervisor makes garbage for scrapes alone: without a limit 3,000 of them took it from 54 to 91 MB. */
export const supervisorYoungGeneration = '--max-semi-space-size=2';
