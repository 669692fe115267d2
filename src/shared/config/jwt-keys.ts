// The keys that verify JSON Web Tokens: a JWK set (RFC 7517) as text becomes keys, or every fault is reported.
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import type { TextFault } from './ini-section.ts';

/** The algorithms of RFC 7518 and RFC 8037 that the gateway verifies, each with the form of its keys. */
const algorithms = {
  RS256: { kty: 'RSA', crv: null, members: ['n', 'e'] },
  PS256: { kty: 'RSA', crv: null, members: ['n', 'e'] },
  ES256: { kty: 'EC', crv: 'P-256', members: ['crv', 'x', 'y'] },
  EdDSA: { kty: 'OKP', crv: 'Ed25519', members: ['crv', 'x'] },
} as const;

export type JwtAlgorithm = keyof typeof algorithms;

/** A public key as a JSON Web Key, with the members that verification needs. */
export type JwtKey = {
  readonly kty: string;
  readonly alg: JwtAlgorithm;
  /** Missing only where the set has one key. */
  readonly kid?: string;
  readonly n?: string;
  readonly e?: string;
  readonly crv?: string;
  readonly x?: string;
  readonly y?: string;
};

/** The keys of a file, or all its faults. */
export type ParsedKeys =
  | { readonly ok: true; readonly keys: readonly JwtKey[] }
  | { readonly ok: false; readonly faults: readonly TextFault[] };

type Members = Readonly<Record<string, unknown>>;

/** Members that only private and symmetric keys have (RFC 7518, section 6). */
const secretMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
/** RFC 7518, section 3.3. */
const minRsaBits = 2048;

/** Parses the text of a JWK set. Leaves out keys whose `use` is `enc`: providers publish them beside those for signatures. */
export function parseJwtKeys(text: string): ParsedKeys {
  const whole = (problem: string, line: number | null = null): ParsedKeys => ({
    ok: false,
    faults: [{ key: null, line, problem }],
  });
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch (error) {
    return whole('is not JSON', lineOf(text, error));
  }
  if (!isObject(set) || !Array.isArray(set.keys)) return whole('is no JWK set: {"keys":[…]}');
  const all: readonly unknown[] = set.keys;
  const faults: TextFault[] = [];
  const places: string[] = [];
  const keys = all.flatMap((key, index) => {
    const place = placeOf(key, index);
    const found = examineKey(key);
    if (typeof found === 'string') faults.push({ key: place, line: null, problem: found });
    else places.push(...found.map(() => place));
    return typeof found === 'string' ? [] : found;
  });
  if (faults.length === 0) faults.push(...findNameFaults(keys, places));
  if (faults.length > 0) return { ok: false, faults };
  return keys.length === 0 ? whole('has no key for signatures') : { ok: true, keys };
}

/** Returns the key, none if it is not for signatures, or what is wrong with it. */
function examineKey(key: unknown): readonly JwtKey[] | string {
  if (!isObject(key)) return 'is no JSON object';
  if (secretMembers.some((member) => Object.hasOwn(key, member))) {
    return 'is a private or symmetric key: the set must hold public keys only';
  }
  if (key.use === 'enc') return [];
  const { alg, kid, use, key_ops: operations } = key;
  if (alg === undefined) return 'does not state its `alg`';
  if (typeof alg !== 'string' || !isJwtAlgorithm(alg)) {
    return `has an \`alg\` that is none of ${Object.keys(algorithms).join(', ')}`;
  }
  if (use !== undefined && use !== 'sig') return 'has another `use` than `sig`';
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) {
    return 'has `key_ops` without `verify`';
  }
  if (kid !== undefined && (typeof kid !== 'string' || kid === ''))
    return 'has a `kid` that is not text';
  const { kty, crv, members } = algorithms[alg];
  if (key.kty !== kty || (crv !== null && key.crv !== crv)) {
    return `has the wrong type: ${alg} needs the \`kty\` ${kty}${crv === null ? '' : ` and the \`crv\` ${crv}`}`;
  }
  const own = Object.fromEntries(members.map((member) => [member, key[member]]));
  const jwk = { kty, ...own };
  const problem = findImportFault(jwk);
  if (problem !== null) return problem;
  // The import has found that its members are texts.
  return [Object.freeze({ ...jwk, alg, ...(kid === undefined ? {} : { kid }) }) as JwtKey];
}

function findImportFault(jwk: JsonWebKey): string | null {
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key: jwk, format: 'jwk' });
    const bits = asymmetricKeyDetails?.modulusLength ?? minRsaBits;
    return bits < minRsaBits ? `has fewer than ${minRsaBits} bits` : null;
  } catch {
    return 'is not a valid public key';
  }
}

/** Which key verifies a token must follow from the token's `kid`. */
function findNameFaults(keys: readonly JwtKey[], places: readonly string[]): readonly TextFault[] {
  if (keys.length < 2) return [];
  return keys.flatMap(({ kid }, index) => {
    const fault = (problem: string) => [{ key: places[index] ?? null, line: null, problem }];
    if (kid === undefined)
      return fault('has no `kid`, which is needed where there are several keys');
    const isRepeated = keys.slice(0, index).some((before) => before.kid === kid);
    return isRepeated ? fault('has the `kid` of a key before it') : [];
  });
}

/** A key by its place in the set and its `kid`. */
function placeOf(key: unknown, index: number): string {
  const kid = isObject(key) && typeof key.kid === 'string' ? ` (${key.kid.slice(0, 40)})` : '';
  return `key ${index + 1}${kid}`;
}

/** Whether signatures of that algorithm are verified. */
export function isJwtAlgorithm(alg: string): alg is JwtAlgorithm {
  return Object.hasOwn(algorithms, alg);
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The line of a syntax error. Null: its message has no position, or has it at the end of the text. */
function lineOf(text: string, error: unknown): number | null {
  const position = /at position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1];
  if (position === undefined) return null;
  return text.slice(0, Number(position)).split('\n').length;
}
