// The session that a driver carries from request to request: an opaque signed token, which is all of it outside of a transaction. Pure.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import {
  type Characteristics,
  type Isolation,
  isolationLevels,
} from '../../../shared/sql/transactions.ts';

/** A driver's session. */
export type DriverSession = {
  /** The token of the transaction that it is in; null: it is in none. */
  readonly transaction: string | null;
  /** For the next transaction alone. */
  readonly next: Characteristics;
  /** For every transaction of the session. */
  readonly always: Characteristics;
};

export const nothingAsked: Characteristics = Object.freeze({ isolation: null, isReadOnly: null });

/** The session of a client that sends none. */
export const freshSession: DriverSession = Object.freeze({
  transaction: null,
  next: nothingAsked,
  always: nothingAsked,
});

const version = 1;
const maxCharacters = 8192;
const macBytes = 16;
const tokenSyntax = /^([\w-]+)\.([\w-]+)$/;

/** The characteristics for the next transaction of a session. */
export function characteristicsOf({ next, always }: DriverSession): Characteristics {
  return {
    isolation: next.isolation ?? always.isolation,
    isReadOnly: next.isReadOnly ?? always.isReadOnly,
  };
}

/** A session after a SET TRANSACTION. */
export function withCharacteristics(
  session: DriverSession,
  scope: 'next' | 'session',
  { isolation, isReadOnly }: Characteristics,
): DriverSession {
  const key = scope === 'next' ? 'next' : 'always';
  const before = session[key];
  return {
    ...session,
    [key]: {
      isolation: isolation ?? before.isolation,
      isReadOnly: isReadOnly ?? before.isReadOnly,
    },
  };
}

/** Reads and writes sessions; all workers that have the same secret read each other's. */
export class DriverSessions {
  #key: Buffer;

  /** @param secret known to the gateways alone, or to them and their clients */
  constructor(secret: string) {
    this.#key = keyOf(secret);
  }

  /** Uses another secret from now on: workers that begin later know no other one. */
  replaceSecret(secret: string): void {
    this.#key = keyOf(secret);
  }

  /** The member `session` of a reply: JSON, in ASCII. */
  encode({ transaction, next, always }: DriverSession): string {
    const fields = [
      version,
      transaction,
      next.isolation,
      next.isReadOnly,
      always.isolation,
      always.isReadOnly,
    ];
    const payload = Buffer.from(JSON.stringify(fields)).toString('base64url');
    return `{"token":"${payload}.${this.#sign(payload)}"}`;
  }

  /**
   * Decodes the member `session` of a request; null: no gateway has made it. If it is signed with another secret, as one from before
   * a change of tokens is, only its transaction counts, which has a signed token of its own. Never throws.
   */
  decode(value: unknown): DriverSession | null {
    if (value === undefined || value === null) return freshSession;
    const { token } = value as { token?: unknown };
    if (typeof token !== 'string' || token.length > maxCharacters) return null;
    const [, payload = '', mac = ''] = tokenSyntax.exec(token) ?? [];
    const session = parsePayload(payload);
    if (session === null || this.#isSigned(payload, mac)) return session;
    return { ...freshSession, transaction: session.transaction };
  }

  #sign(payload: string): string {
    return createHmac('sha256', this.#key)
      .update(payload)
      .digest()
      .subarray(0, macBytes)
      .toString('base64url');
  }

  #isSigned(payload: string, mac: string): boolean {
    const [given, expected] = [Buffer.from(mac), Buffer.from(this.#sign(payload))];
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}

function keyOf(secret: string): Buffer {
  return createHash('sha256').update(`dbhttpd driver sessions\0${secret}`).digest();
}

function parsePayload(payload: string): DriverSession | null {
  let fields: unknown;
  try {
    fields = JSON.parse(Buffer.from(payload, 'base64url').toString());
  } catch {
    return null;
  }
  if (!Array.isArray(fields) || fields[0] !== version) return null;
  const [, transaction, nextLevel, nextReadOnly, level, isReadOnly] = fields as unknown[];
  if (transaction !== null && typeof transaction !== 'string') return null;
  const next = parseCharacteristics(nextLevel, nextReadOnly);
  const always = parseCharacteristics(level, isReadOnly);
  return next === null || always === null ? null : { transaction, next, always };
}

function parseCharacteristics(level: unknown, isReadOnly: unknown): Characteristics | null {
  const isLevel = level === null || isolationLevels.includes(level as Isolation);
  if (!isLevel || (isReadOnly !== null && typeof isReadOnly !== 'boolean')) return null;
  return { isolation: level as Isolation | null, isReadOnly };
}
