// The caller of a request: its client, and the user for which that client vouches.
import { type Client, defaultClient } from './client.ts';

/** Claims of a JSON Web Token, or those that a client may state itself, by name. */
export type Claims = Readonly<Record<string, unknown>>;

/** The caller of a request. Requests of one token share one object until tokens, keys or clients are replaced. */
export type Caller = {
  readonly client: Client;
  /** The `sub` of its JSON Web Token; null: it has sent another credential, or none. */
  readonly user: string | null;
  /** Empty: it has sent no JSON Web Token, and states none itself. */
  readonly claims: Claims;
  /** Idempotency keys, shared reads and running requests belong to callers with an equal text. */
  readonly owner: string;
  /** The same for transactions: as `owner`, but where no clients are configured each token has its own. */
  readonly transactionOwner: string;
};

/** The longest part of a user's name in logs and lists, in characters. */
const maxShown = 128;

/** The user of a caller for logs and lists; null: there is none. */
export function shownUser({ user }: Caller): string | null {
  return user !== null && user.length > maxShown ? `${user.slice(0, maxShown)}…` : user;
}

/** The part of a caller that decides whose a running request is. */
export type RequestOwner = Pick<Caller, 'owner' | 'claims'>;

const noClaims: Claims = Object.freeze({});

/** Creates a caller. @param claims those that are bound as parameters decide about ownership too */
export function createCaller(
  client: Client,
  user: string | null = null,
  claims: Claims = noClaims,
): Caller {
  const owner = JSON.stringify([client.name, user]);
  return Object.freeze({ client, user, claims, owner, transactionOwner: owner });
}

/** Creates the caller of requests with one of several tokens, where no clients are configured. @param digest of the token */
export function createTokenCaller(digest: string): Caller {
  const { owner } = defaultCaller;
  return Object.freeze({ ...defaultCaller, transactionOwner: JSON.stringify([owner, digest]) });
}

/** The caller of requests with a token of the section's, and of every request of an instance without clients and tokens. */
export const defaultCaller: Caller = createCaller(defaultClient);
