// What the launcher and the detached supervisor say to each other, and the descriptors it inherits.
// Must not know what either does.

import type { ListenAddress } from '../shared/config/addresses.ts';
import type { Sections } from '../shared/config/config.ts';
import type { ExitCode } from '../shared/process/exit-codes.ts';

/** Descriptors of the detached supervisor, after stdio and the channel. */
export const inherited = { claim: 4, listener: 5 } as const;

/** From the launcher: settings travel by this channel, never by arguments or environment. */
export type ToDaemon = {
  readonly sections: Sections;
  readonly address: ListenAddress;
  /** The socket was itself inherited (socket activation), and stays when the instance goes. */
  readonly outlives: boolean;
  /** How long its workers may take to listen. */
  readonly bootBoundMs: number;
};

/** From the detached supervisor. */
export type FromDaemon =
  | { readonly kind: 'ready' }
  | { readonly kind: 'running' }
  | { readonly kind: 'failed'; readonly exitCode: ExitCode };
