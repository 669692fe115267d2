// How long a request of a test may wait, and whose it is.
import { type Client, defaultClient } from '../../../src/shared/clients/client.ts';
import { Account } from '../../../src/worker/servers/account.ts';
import type { WaitLimit } from '../../../src/worker/servers/pool/wait-limit.ts';

/** An account of a client that differs from the default one in this. */
export function createAccount(more: Partial<Client> = {}): Account {
  return new Account({ ...defaultClient, ...more });
}

/** A limit that is far away, for a request of a client and user of its own. */
export function createLimit(more: Partial<WaitLimit> = {}): WaitLimit {
  return { account: createAccount(), user: null, since: 0, longestMs: 60_000, ...more };
}
