// How much garbage V8 may keep, in each kind of process.
// Must not know how they are started.

/**
 * Flags of a worker. V8's own limit of the young generation is 3 × 16 MiB, which memory under load reaches and keeps:
 * most of what eight downloads of 25 MB at once add. Too small, and requests in flight survive collections: on one
 * worker a point query cost 30 µs at 2 MiB and 20 at 8 with 64 clients, 33 and 25 with 256.
 */
export const workerHeapLimits: readonly string[] = ['--max-semi-space-size=8'];

/**
 * Flags of a detached supervisor, which makes garbage for scrapes and snapshots alone, and has time to collect it: a
 * young generation of 3 × 1 MiB, and an old one that grows by small steps. With a small young generation alone (2 MiB)
 * 6,000 scrapes took it from 67 to 92 MB, a sawtooth of 18 MB over 6 MB that live; so it stays between 70 and 77.
 */
export const supervisorHeapLimits: readonly string[] = ['--optimize-for-size'];
