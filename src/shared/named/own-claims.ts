// The claims that a named statement binds: what a call does belongs to their values.
import type { Claims } from '../clients/caller.ts';
import type { NamedStatement } from './statement.ts';

/** The values of bound claims as JSON, by their paths as JSON. */
export type OwnClaims = ReadonlyMap<string, string>;

const none: OwnClaims = new Map();

/** The claims that a statement takes from a caller who has them. */
export function claimsOf({ parameters }: NamedStatement, claims: Claims): OwnClaims {
  let found: Map<string, string> | null = null;
  for (const { fallback } of parameters) {
    if (fallback.kind !== 'claim') continue;
    found ??= new Map();
    found.set(JSON.stringify(fallback.path), textAt(claims, fallback.path) ?? '');
  }
  return found ?? none;
}

/** Whether a caller has all of these claims, with the same values. */
export function hasClaims(claims: Claims, own: OwnClaims): boolean {
  return [...own].every(([path, text]) => textAt(claims, JSON.parse(path)) === text);
}

/** The value of the claim at a path as JSON, with all digits of its numbers; null: there is none. */
function textAt(claims: Claims, path: readonly string[]): string | null {
  let found: unknown = claims;
  for (const segment of path) {
    const isThere = typeof found === 'object' && found !== null && Object.hasOwn(found, segment);
    found = isThere ? (found as Claims)[segment] : undefined;
  }
  return found === undefined ? null : JSON.stringify(found, exactNumbers);
}

/** A message between processes keeps the fields of a LosslessNumber, and not its class. */
function exactNumbers(_: string, value: unknown): unknown {
  const isNumber =
    typeof value === 'object' &&
    value !== null &&
    (value as { readonly isLosslessNumber?: unknown }).isLosslessNumber === true;
  return isNumber ? (value as unknown as { readonly value: string }).value : value;
}
