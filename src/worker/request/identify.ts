// Identifies the caller of a request by its credentials: a token, a JSON Web Token, or none.
import { hash } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import {
  type Caller,
  createCaller,
  createTokenCaller,
  defaultCaller,
} from '../../shared/clients/caller.ts';
import { type Client, hasExpired } from '../../shared/clients/client.ts';
import type { Access } from '../../shared/config/access.ts';
import { type Failure, type Refused, refusal } from '../failure/failure.ts';
import type { RequestHeaders } from '../http/request.ts';
import { BoundedWork } from './bounded-work.ts';
import { bearerToken, parseBasic } from './credentials.ts';
import { JsonWebTokens, type JwtNames, type JwtVerdict } from './json-web-tokens.ts';

/** How a door expects a token: as such (RFC 6750), or as the password of Basic authentication (RFC 7617), whose user may have any name. */
export type Scheme = 'bearer' | 'basic';

/** The caller of a request, or why it is rejected. */
export type Identified = { readonly ok: true; readonly caller: Caller } | Refused;

/** The first section's tokens and clients. */
export type Credentials = {
  readonly tokens: readonly string[];
  /** Null: no clients are configured. */
  readonly access: Access | null;
};

/** Answers a credential without a look-up: only a JSON Web Token that is not known yet takes time. */
export type Identify = (
  headers: RequestHeaders,
  scheme: Scheme,
) => Identified | Promise<Identified>;

const refused = (failure: Failure): Refused => ({ ok: false, failure });

/** The text is always the same, so that it does not show how close a credential was. */
const unauthorized: Readonly<Record<Scheme, Refused>> = {
  bearer: refused(
    refusal('UNAUTHORIZED', 'A valid token is needed: send Authorization: Bearer <token>.'),
  ),
  basic: refused(
    refusal('UNAUTHORIZED', 'Basic authentication is needed, with a valid token as the password.'),
  ),
};

/** The failure of a request whose credentials cannot be understood at all. */
export function refuseCredentials(scheme: Scheme): Refused {
  return unauthorized[scheme];
}

const authBusy = refused({
  ...refusal(
    'AUTH_BUSY',
    'Too many JSON Web Tokens are being verified. Nothing was executed; it is safe to try again.',
  ),
  retryAfterSeconds: 1,
});

/** The bounds on verifications of signatures. */
const verificationBounds = { maxRunning: 32, maxWaiting: 256, maxWaitMs: 1_000 };
/** How often the keys are read again for the sake of a token. */
const rereadIntervalMs = 10_000;

/** The parts that an identifier gets from its worker. */
export type IdentifierParts = {
  /** Null: JSON Web Tokens are not accepted. */
  readonly names: JwtNames | null;
  /** Has the keys of JSON Web Tokens read again. Resolves when `replace` was called with what has changed. */
  readonly rereadKeys: () => Promise<unknown>;
};

type Found = Extract<Identified, { ok: true }>;

/** All that the present credentials decide. */
type State = {
  /** The caller of every request, whatever it sends; null: credentials decide. */
  readonly open: Found | null;
  /** By the SHA-256 of their tokens. */
  readonly byDigest: ReadonlyMap<string, Found>;
  /** The caller of requests without any credentials; null: they are rejected. */
  readonly anonymous: Found | null;
  readonly jwt: JsonWebTokens | null;
};

/** Identifies callers. Tokens are found by their digests: that takes the same time for any number of clients, and shows nothing about a token. */
export class Identifier {
  readonly #parts: IdentifierParts;
  readonly #verifications = new BoundedWork(verificationBounds);
  #state: State;
  #rereading: Promise<unknown> | null = null;
  #rereadAt = Number.NEGATIVE_INFINITY;

  constructor(credentials: Credentials, parts: IdentifierParts) {
    this.#parts = parts;
    this.#state = this.#prepare(credentials);
  }

  /** Uses other credentials from now on. Nothing that was verified before counts. */
  replace(credentials: Credentials): void {
    this.#state = this.#prepare(credentials);
  }

  /** Identifies the caller of a request. The promise never takes longer than a few seconds. */
  readonly identify: Identify = (headers, scheme) => {
    const { open, byDigest, anonymous, jwt } = this.#state;
    if (open !== null) return open;
    if (headers.authorization === undefined) {
      return anonymous === null ? unauthorized[scheme] : inForce(anonymous, scheme);
    }
    const token = tokenOf(headers, scheme);
    if (token === '') return unauthorized[scheme];
    const digest = hash('sha256', token);
    const known = byDigest.get(digest);
    if (known !== undefined) return inForce(known, scheme);
    if (jwt === null) return unauthorized[scheme];
    return this.#judge(token, digest, scheme, true);
  };

  #prepare({ tokens, access }: Credentials): State {
    const { names } = this.#parts;
    const own: Found = { ok: true, caller: defaultCaller };
    const digests = tokens.map((token) => hash('sha256', token));
    if (access === null) {
      const byDigest = new Map(digests.map((digest) => [digest, ownerOfToken(digest)]));
      return { open: tokens.length === 0 ? own : null, byDigest, anonymous: null, jwt: null };
    }
    const byDigest = new Map(digests.map((digest) => [digest, own]));
    const { clients, anonymous } = access.clients;
    for (const client of clients) {
      const found = callerOf(client);
      for (const digest of client.tokenDigests) byDigest.set(digest, found);
    }
    return {
      open: null,
      byDigest,
      anonymous: anonymous === null ? null : callerOf(anonymous),
      jwt: names === null ? null : new JsonWebTokens(access, names, this.#verifications),
    };
  }

  /** @param mayReread whether an unknown key may have the keys read again */
  #judge(
    token: string,
    digest: string,
    scheme: Scheme,
    mayReread: boolean,
  ): Identified | Promise<Identified> {
    const state = this.#state;
    if (state.jwt === null) return unauthorized[scheme];
    const judged = state.jwt.judge(token, digest);
    if (!(judged instanceof Promise))
      return this.#conclude(judged, token, digest, scheme, mayReread);
    return judged.then((verdict) =>
      // Clients or keys were replaced meanwhile: what was found under the former ones counts no more.
      state === this.#state
        ? this.#conclude(verdict, token, digest, scheme, mayReread)
        : this.#judge(token, digest, scheme, false),
    );
  }

  #conclude(
    verdict: JwtVerdict,
    token: string,
    digest: string,
    scheme: Scheme,
    mayReread: boolean,
  ): Identified | Promise<Identified> {
    switch (verdict.kind) {
      case 'accepted':
        return inForce({ ok: true, caller: verdict.caller }, scheme);
      case 'rejected':
        return unauthorized[scheme];
      case 'busy':
        return authBusy;
      case 'unknown key': {
        const rereading = mayReread ? this.#reread() : null;
        if (rereading === null) return unauthorized[scheme];
        return rereading.then(() => this.#judge(token, digest, scheme, false));
      }
      default:
        return verdict satisfies never;
    }
  }

  /** Has the keys read again; null: that was done a moment ago. Simultaneous requests share it. */
  #reread(): Promise<unknown> | null {
    if (this.#rereading !== null) return this.#rereading;
    const now = performance.now();
    if (now - this.#rereadAt < rereadIntervalMs) return null;
    this.#rereadAt = now;
    this.#rereading = this.#parts.rereadKeys().finally(() => {
      this.#rereading = null;
    });
    return this.#rereading;
  }
}

function ownerOfToken(digest: string): Found {
  return { ok: true, caller: createTokenCaller(digest) };
}

function callerOf(client: Client): Found {
  return { ok: true, caller: createCaller(client) };
}

/** The caller, unless its client has expired. */
function inForce(found: Found, scheme: Scheme): Identified {
  return hasExpired(found.caller.client, Date.now()) ? unauthorized[scheme] : found;
}

function tokenOf(headers: RequestHeaders, scheme: Scheme): string {
  if (scheme === 'bearer') return bearerToken(headers);
  return parseBasic(headers.authorization)?.password ?? '';
}
