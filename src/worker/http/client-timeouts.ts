// How long a client may take over each step.
// Must not know sockets.

/** How long the client of a reply may take nothing of it; then the reply is reset. */
export type StallLimits = {
  readonly stallMs: number;
  /** For a client on the same host: over loopback it acknowledges 64 KiB at a time, which takes 130 s at 0.5 KB/s. */
  readonly sameHostStallMs: number;
  /** For a client whose acknowledgements cannot be seen: a third of a send buffer of 4 MiB takes so long at 5 KB/s. */
  readonly unseenStallMs: number;
};

/** How long a client may take. Handed in because a test of them would else last minutes. */
export type ClientTimeouts = StallLimits & {
  /** From the connection, or the first byte of a further request, to the end of its headers. */
  readonly headersMs: number;
  /** The same to the end of its body. */
  readonly requestMs: number;
  /** What a connection beyond the limit may last. */
  readonly beyondLimitMs: number;
  /** How often all this is looked at. */
  readonly checkMs: number;
};

/** The gateway's own. */
export const clientTimeouts: ClientTimeouts = {
  headersMs: 20_000,
  requestMs: 60_000,
  stallMs: 30_000,
  sameHostStallMs: 130_000,
  unseenStallMs: 300_000,
  beyondLimitMs: 2_000,
  checkMs: 2_000,
};
