// JSON Web Tokens (RFC 7519): what needs no signature is checked first, few signatures are verified at once, and verified tokens are remembered.
import { createPublicKey, type KeyObject } from 'node:crypto';
import { type Caller, type Claims, createCaller } from '../../shared/clients/caller.ts';
import { type Client, hasExpired } from '../../shared/clients/client.ts';
import { findClientOf } from '../../shared/clients/client-of-claims.ts';
import type { Access } from '../../shared/config/access.ts';
import { isJwtAlgorithm, type JwtKey } from '../../shared/config/jwt-keys.ts';
import type { BoundedWork } from './bounded-work.ts';

/** The issuer and the audience that every token must name. */
export type JwtNames = { readonly issuer: string; readonly audience: string };

/** A token belongs to a caller, is rejected, names a key that is not known, or must be sent again because too many are being verified. */
export type JwtVerdict =
  | { readonly kind: 'accepted'; readonly caller: Caller }
  | { readonly kind: 'rejected' }
  | { readonly kind: 'unknown key' }
  | { readonly kind: 'busy' };

/** A token that awaits only the verification of its signature. */
type Checked = {
  readonly kind: 'checked';
  readonly key: UsableKey;
  readonly client: Client;
  readonly user: string;
  /** The end of its validity, with the leeway, in ms since 1970. */
  readonly validUntil: number;
};

type UsableKey = Pick<JwtKey, 'kid' | 'alg'> & { readonly publicKey: KeyObject };

/** A token whose signature was verified. */
type Remembered = {
  readonly accepted: Extract<JwtVerdict, { kind: 'accepted' }>;
  readonly validUntil: number;
};

type Header = Readonly<Record<string, unknown>>;

/** How far the clocks of issuer and gateway may differ. */
const leewaySeconds = 30;
const usualRemembered = 10_000;
const rejected: JwtVerdict = { kind: 'rejected' };
const unknownKey: JwtVerdict = { kind: 'unknown key' };
const busy: JwtVerdict = { kind: 'busy' };
/** JWS Compact Serialization (RFC 7515 section 3.1). */
const compactSyntax = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** The verified and unverified tokens under one set of clients and keys. If either is replaced, another object takes its place. */
export class JsonWebTokens {
  readonly #names: JwtNames;
  readonly #clients: readonly Client[];
  readonly #keys: readonly UsableKey[];
  readonly #verifications: BoundedWork;
  /** Loaded only where there are tokens to verify, because it is a fifth of what a worker loads. */
  readonly #jose = import('jose');
  readonly #maxRemembered: number;
  /** By the digests of the tokens, the one that was used last at the end. */
  readonly #remembered = new Map<string, Remembered>();
  /** Requests with the same token share its verification. */
  readonly #underWay = new Map<string, Promise<JwtVerdict>>();

  /**
   * @param verifications the bound on verifications, which outlives this object
   * @param maxRemembered the most verified tokens that are kept
   */
  constructor(
    { clients, jwtKeys }: Access,
    names: JwtNames,
    verifications: BoundedWork,
    maxRemembered = usualRemembered,
  ) {
    this.#maxRemembered = maxRemembered;
    this.#names = names;
    this.#clients = clients.clients;
    this.#verifications = verifications;
    this.#keys = jwtKeys.map(({ kid, alg, ...key }) => {
      return {
        ...(kid !== undefined && { kid }),
        alg,
        publicKey: createPublicKey({ key, format: 'jwk' }),
      };
    });
  }

  /** Judges a token: at once if it is known or needs no signature to be rejected. @param digest identifies the token */
  judge(token: string, digest: string): JwtVerdict | Promise<JwtVerdict> {
    const now = Date.now();
    const remembered = this.#recall(digest, now);
    if (remembered !== null) return remembered;
    const checked = this.#check(token, now);
    if (checked.kind !== 'checked') return checked;
    const underWay = this.#underWay.get(digest);
    if (underWay !== undefined) return underWay;
    const verifying = this.#verify(token, digest, checked).finally(() =>
      this.#underWay.delete(digest),
    );
    this.#underWay.set(digest, verifying);
    return verifying;
  }

  #recall(digest: string, now: number): JwtVerdict | null {
    const found = this.#remembered.get(digest);
    if (found === undefined) return null;
    this.#remembered.delete(digest);
    if (now >= found.validUntil) return null;
    this.#remembered.set(digest, found);
    return found.accepted;
  }

  /** Checks everything that needs no signature. */
  #check(token: string, now: number): Checked | JwtVerdict {
    const [, encodedHeader = '', encodedClaims = ''] = compactSyntax.exec(token) ?? [];
    const header = parseObject(encodedHeader);
    const claims = parseObject(encodedClaims);
    if (header === null || claims === null || !isHeaderSound(header)) return rejected;
    const validUntil = this.#validityOf(claims, now);
    const client = validUntil === null ? null : findClientOf(claims, this.#clients);
    if (validUntil === null || client === null || hasExpired(client, now)) return rejected;
    const key = this.#keyOf(header);
    if (key === null) return header.kid === undefined ? rejected : unknownKey;
    // The key decides which algorithm is used: a token cannot choose another one for it.
    if (header.alg !== key.alg) return rejected;
    return { kind: 'checked', key, client, user: claims.sub as string, validUntil };
  }

  /** The end of its validity in ms since 1970; null: it is not valid now, or not meant for this gateway. */
  #validityOf({ exp, nbf, iat, iss, aud, sub }: Claims, now: number): number | null {
    const { issuer, audience } = this.#names;
    const isMeant = iss === issuer && (aud === audience || (isList(aud) && aud.includes(audience)));
    if (!isMeant || typeof sub !== 'string' || sub === '') return null;
    if (!isTime(exp) || !(nbf === undefined || isTime(nbf)) || !(iat === undefined || isTime(iat)))
      return null;
    const validUntil = (exp + leewaySeconds) * 1000;
    if (now >= validUntil) return null;
    return nbf !== undefined && now < (nbf - leewaySeconds) * 1000 ? null : validUntil;
  }

  /** The only key may have no name. */
  #keyOf({ kid }: Header): UsableKey | null {
    const [only, ...others] = this.#keys;
    if (
      only !== undefined &&
      others.length === 0 &&
      (only.kid === undefined || kid === undefined)
    ) {
      return only;
    }
    return this.#keys.find((key) => key.kid === kid) ?? null;
  }

  async #verify(token: string, digest: string, checked: Checked): Promise<JwtVerdict> {
    const verdict = await this.#verifications.run(() => this.#verifySignature(token, checked));
    if (verdict === null) return busy;
    if (verdict.kind === 'accepted') {
      this.#remember(digest, { accepted: verdict, validUntil: checked.validUntil });
    }
    return verdict;
  }

  async #verifySignature(
    token: string,
    { key, client, user }: Checked,
  ): Promise<Exclude<JwtVerdict, { kind: 'unknown key' | 'busy' }>> {
    const { errors, jwtVerify } = await this.#jose;
    try {
      const { payload } = await jwtVerify(token, key.publicKey, {
        algorithms: [key.alg],
        ...this.#names,
        clockTolerance: leewaySeconds,
        requiredClaims: ['exp', 'sub'],
      });
      return { kind: 'accepted', caller: createCaller(client, user, Object.freeze(payload)) };
    } catch (error) {
      if (error instanceof errors.JOSEError) return { kind: 'rejected' };
      throw error;
    }
  }

  #remember(digest: string, token: Remembered): void {
    if (this.#remembered.size >= this.#maxRemembered) {
      const [oldest = ''] = this.#remembered.keys();
      this.#remembered.delete(oldest);
    }
    this.#remembered.set(digest, token);
  }
}

/** Whether the header promises nothing that is not kept: RFC 7515 section 4.1.11, RFC 7519 section 5.1, RFC 9068 section 2.1. */
function isHeaderSound({ alg, typ, crit, kid }: Header): boolean {
  if (typeof alg !== 'string' || !isJwtAlgorithm(alg) || crit !== undefined) return false;
  if (kid !== undefined && typeof kid !== 'string') return false;
  return typ === undefined || (typeof typ === 'string' && /^(jwt|at\+jwt)$/i.test(typ));
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** The object in a part of a token; null: it is none. */
function parseObject(encoded: string): Readonly<Record<string, unknown>> | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(
      Buffer.from(encoded, 'base64url'),
    );
    const found: unknown = JSON.parse(text);
    return typeof found === 'object' && found !== null && !Array.isArray(found)
      ? (found as Readonly<Record<string, unknown>>)
      : null;
  } catch {
    return null;
  }
}
