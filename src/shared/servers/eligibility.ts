// Whether a writable server may be the primary, by what is seen and what is remembered: one function for each rule.
// Pure. A position cannot prove a succession: a promoted server may lack old rows, and an old primary may hold all that an idle new one
// does. The proof is which server was a replica, and of which. scripts/model explores these rules.
import { hasAllOf, type Position, parsePosition } from './position.ts';
import { identityOf, type RememberedSource } from './primary-memory.ts';
import {
  followsNone,
  hasRestarted,
  holdsAllOf,
  isBehind,
  isBehindByMemory,
  isRemembered,
  isRememberedSource,
  isSameSource,
  nameOf,
  rememberedReplica,
  type Scene,
  type SeenCandidate,
  seenSource,
  sourcesOf,
  wasBehindPrimary,
} from './scene.ts';
import type { Source } from './server-view.ts';

/** The rules by which a writable server is not eligible. */
export const eligibilityRules = [
  'not_successor',
  'restarted',
  'replica_left',
  'replica_elsewhere',
  'candidate_ahead',
] as const;

export type Ineligibility = {
  readonly rule: (typeof eligibilityRules)[number];
  /** The facts against it, seen or remembered, for people. */
  readonly evidence: string;
};

/** Why a writable server may not be the primary; null: it is eligible. */
export function whyIneligible(one: SeenCandidate, scene: Scene): Ineligibility | null {
  const others = scene.seen.filter((other) => other !== one);
  return (
    whyNoSuccessor(one, others, scene) ??
    whyRestarted(one, others, scene) ??
    findFirst(others, (other) => whyAgainst(one, other, scene))
  );
}

/** Another primary is remembered, and nothing shows that this one has taken its place. */
function whyNoSuccessor(
  one: SeenCandidate,
  others: readonly SeenCandidate[],
  scene: Scene,
): Ineligibility | null {
  const { memory } = scene;
  if (memory === null || isRemembered(one, scene)) return null;
  // It has been a replica since it was the primary, and was not seen writable beside a primary since.
  if (rememberedReplica(one.identity, scene) !== null) return null;
  const isFollowed = others.some(
    (other) =>
      (isRemembered(other, scene) || wasBehindPrimary(other, scene)) && isBehind(other, one, scene),
  );
  if (isFollowed || holdsOwnOfPrimary(one, scene)) return null;
  const primary = others.find((other) => isRemembered(other, scene));
  const where = primary === undefined ? 'which is not seen now' : `${nameOf(primary)}`;
  return {
    rule: 'not_successor',
    evidence: `another server is remembered as the primary (${where}), and nothing shows that this one has followed it`,
  };
}

/** Whether it holds all that the remembered primary has itself written since it was chosen, and that is not nothing. */
function holdsOwnOfPrimary({ view }: SeenCandidate, { memory, reference }: Scene): boolean {
  if (memory === null || view.position === null) return false;
  const { address, identity, number, taken, position } = memory.primary;
  const isOfIt = reference !== null && identityOf(address, reference) === identity;
  const latest = isOfIt ? reference.position : null;
  const known = [position === null ? null : parsePosition(position), latest];
  const before = taken === null ? null : parsePosition(taken);
  const own = known.flatMap((one) => ownSince(one, before, { identity, number }) ?? []);
  return own.length > 0 && own.every((one) => hasAllOf(view.position as Position, one) === true);
}

/** The part of a position that a server has itself written and that is not in an earlier position; null: nothing. */
function ownSince(
  position: Position | null,
  before: Position | null,
  { identity, number }: { readonly identity: string; readonly number: string },
): Position | null {
  if (position?.kind === 'mysql') {
    const uuid = identity.toLowerCase();
    const sets = new Map([...position.sets].filter(([source]) => source.split(':')[0] === uuid));
    const own: Position = { kind: 'mysql', sets };
    return sets.size === 0 || (before !== null && hasAllOf(before, own) === true) ? null : own;
  }
  if (position?.kind !== 'mariadb') return null;
  const highest = new Map([...position.highest].filter(([key]) => key.split('-')[1] === number));
  const own: Position = { kind: 'mariadb', highest, last: new Map() };
  return highest.size === 0 || (before !== null && hasAllOf(before, own) === true) ? null : own;
}

/** The remembered primary was restarted, and another server that never was a primary is writable. */
function whyRestarted(
  one: SeenCandidate,
  others: readonly SeenCandidate[],
  scene: Scene,
): Ineligibility | null {
  const { memory } = scene;
  if (memory === null || !isRemembered(one, scene) || !hasRestarted(one, scene)) return null;
  const rival = others.find(
    (other) =>
      !other.view.isReadOnly && followsNone(other) && !memory.former.includes(other.identity),
  );
  if (rival === undefined) return null;
  return {
    rule: 'restarted',
    evidence: `it is the remembered primary and has been restarted, while ${nameOf(rival)} can be written to as well`,
  };
}

/** The evidence of one other candidate against it. A candidate that follows it is none, whatever it holds. */
function whyAgainst(one: SeenCandidate, other: SeenCandidate, scene: Scene): Ineligibility | null {
  if (isBehindByMemory(other, one, scene)) return null;
  const sources = sourcesOf(other);
  if (sources.length > 0) {
    const isAhead = !holds(one, other, scene);
    return findFirst(sources, (source) => {
      const isStale =
        (isOutOfDate(one, other, scene) && !hasMoved(other, source, scene)) ||
        followsPredecessor(one, source, scene);
      return (
        whyLeft(one, other, source, scene) ?? whyElsewhere(other, source, isAhead, isStale, scene)
      );
    });
  }
  return other.view.following.kind === 'none' ? whyDetached(one, other, scene) : null;
}

/** Whether the other candidate was not seen behind the remembered primary since that was chosen, so that what it shows is out of date. */
function isOutOfDate(one: SeenCandidate, other: SeenCandidate, scene: Scene): boolean {
  return isRemembered(one, scene) && !wasBehindPrimary(other, scene);
}

/** Whether it followed another server before, by the memory: then what it shows is news. */
function hasMoved(other: SeenCandidate, source: RememberedSource, scene: Scene): boolean {
  const before = rememberedReplica(other.identity, scene);
  return before !== null && !isSameSource(before.follows, source);
}

/** Whether a source is the remembered primary, and this server is a remembered replica, which takes its place. */
function followsPredecessor(one: SeenCandidate, source: RememberedSource, scene: Scene): boolean {
  return rememberedReplica(one.identity, scene) !== null && isRememberedSource(source, scene);
}

/** A replica of the remembered primary now follows a server that cannot be seen. */
function whyLeft(
  one: SeenCandidate,
  other: SeenCandidate,
  source: RememberedSource,
  scene: Scene,
): Ineligibility | null {
  if (!isRemembered(one, scene) || !wasBehindPrimary(other, scene)) return null;
  if (!hasMoved(other, source, scene) || seenSource(source, scene) !== null) return null;
  return {
    rule: 'replica_left',
    evidence: `${nameOf(other)} was its replica, and follows a server now that cannot be seen`,
  };
}

/** A candidate is connected to a server that cannot be seen, or has received from its source what this one lacks. */
function whyElsewhere(
  other: SeenCandidate,
  source: Source,
  isAhead: boolean,
  isStale: boolean,
  scene: Scene,
): Ineligibility | null {
  if (seenSource(source, scene) === null && source.isConnected && !isStale) {
    return {
      rule: 'replica_elsewhere',
      evidence: `${nameOf(other)} is connected to a server that cannot be seen`,
    };
  }
  if (!isAhead || (isStale && !source.isConnected)) return null;
  return {
    rule: 'candidate_ahead',
    evidence: `${nameOf(other)} follows another server, and holds what this one lacks`,
  };
}

/** A read-only candidate that follows no server holds what this one lacks: it may have been the primary since. */
function whyDetached(one: SeenCandidate, other: SeenCandidate, scene: Scene): Ineligibility | null {
  if (!other.view.isReadOnly || holds(one, other, scene)) return null;
  if (isOutOfDate(one, other, scene)) return null;
  if (rememberedReplica(one.identity, scene) !== null && isRemembered(other, scene)) return null;
  const isFollowed = scene.seen.some(
    (third) => third !== one && third !== other && isBehindByMemory(third, one, scene),
  );
  if (isFollowed && holdsAllOf(other, one) === false) return null;
  return {
    rule: 'candidate_ahead',
    evidence: `${nameOf(other)} is read-only, follows no server, and holds what this one lacks`,
  };
}

/**
 * Whether it holds all that another candidate has. If the two could not be compared yet, only the remembered primary counts as holding it.
 * Without GTIDs nothing can be compared, and any candidate does.
 */
function holds(one: SeenCandidate, other: SeenCandidate, scene: Scene): boolean {
  return holdsAllOf(one, other) ?? (one.view.position === null || isRemembered(one, scene));
}

function findFirst<Item, Found>(
  items: readonly Item[],
  find: (item: Item) => Found | null,
): Found | null {
  for (const item of items) {
    const found = find(item);
    if (found !== null) return found;
  }
  return null;
}
