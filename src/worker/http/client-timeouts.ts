// How long a client may take over each step.
// Must not know sockets.

/** How long a client may take. Handed in because a test of them would else last minutes. */
export type ClientTimeouts = {
  /** From the connection, or the first byte of a further request, to the end of its headers. */
  readonly headersMs: number;
  /** The same to the end of its body. */
  readonly requestMs: number;
  /** A reply of which the client takes nothing for so long is reset. */
  readonly stallMs: number;
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
  beyondLimitMs: 2_000,
  checkMs: 2_000,
};
