// Conditions on the claims of a JSON Web Token: which client the token belongs to. Pure.
import type { Claims } from './caller.ts';
import type { ClaimCondition, Client } from './client.ts';

/** The first client, in the order of the file, whose conditions all hold; null: there is none. */
export function findClientOf(claims: Claims, clients: readonly Client[]): Client | null {
  return clients.find((client) => belongsTo(claims, client)) ?? null;
}

function belongsTo(claims: Claims, { conditions }: Client): boolean {
  return conditions.length > 0 && conditions.every((condition) => holds(condition, claims));
}

/** Whether the claim equals the value, or is an array or a space-separated list that contains it. */
function holds({ path, value }: ClaimCondition, claims: Claims): boolean {
  const claim = claimAt(claims, path);
  if (Array.isArray(claim)) return claim.some((member) => equals(member, value));
  if (equals(claim, value)) return true;
  return typeof claim === 'string' && claim.split(' ').includes(value);
}

/** The value of a file is text, so that numbers and booleans are compared as text. */
function equals(claim: unknown, value: string): boolean {
  switch (typeof claim) {
    case 'string':
      return claim === value;
    case 'number':
    case 'boolean':
      return String(claim) === value;
    default:
      return false;
  }
}

/** The claim at a path; undefined: there is none. Only members of objects count, and no inherited ones. */
function claimAt(claims: Claims, path: readonly string[]): unknown {
  let found: unknown = claims;
  for (const name of path) {
    if (typeof found !== 'object' || found === null || Array.isArray(found)) return undefined;
    if (!Object.hasOwn(found, name)) return undefined;
    found = (found as Claims)[name];
  }
  return found;
}
