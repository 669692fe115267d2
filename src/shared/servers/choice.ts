// Chooses the server that takes writes: the eligible writable candidate, and if there are several, the one that the rules prefer. Pure.
import { type Ineligibility, whyIneligible } from './eligibility.ts';
import {
  followsNone,
  hasRestarted,
  holdsAllOf,
  holdsViews,
  isBehind,
  isBehindByMemory,
  isRemembered,
  type Scene,
  type SeenCandidate,
  sourcesOf,
  wasBehindPrimary,
} from './scene.ts';
import type { ServerView } from './server-view.ts';

/** The decision about the writable candidates. */
export type Choice = {
  /** The server that takes writes; null: none. */
  readonly primary: SeenCandidate | null;
  /** Why it was chosen, or why none of several was. */
  readonly reason: string;
  /** Several candidates are eligible, and nothing shows which one is the primary. */
  readonly isContested: boolean;
  /** A warning for operators although writes go on; null: none. */
  readonly warning: string | null;
  /** The writable candidates that may not be written to. */
  readonly ineligible: ReadonlyMap<SeenCandidate, Ineligibility>;
};

const noChoice = {
  primary: null,
  reason: '',
  isContested: false,
  warning: null,
  ineligible: new Map<SeenCandidate, Ineligibility>(),
} as const;
const severalWarning = 'several candidates can be written to: set read_only on all but one';
const ringWarning = 'candidates follow each other and are writable: the first in host takes writes';

/** Chooses the server that takes writes. */
export function choose(scene: Scene): Choice {
  const writable = scene.seen.filter(({ view }) => !view.isReadOnly);
  const nodes = writable.filter(({ view }) => isOneOfMany(view));
  if (nodes.length > 0 && nodes.length === writable.length) return chooseNode(nodes);
  const alone = writable.filter(followsNone);
  const isRing = alone.length === 0;
  // Servers that follow each other do so on purpose, and count as following none.
  const contenders = isRing ? writable.filter((one) => isBehind(one, one, scene)) : alone;
  const ineligible = new Map<SeenCandidate, Ineligibility>();
  for (const one of contenders) {
    const ineligibility = isRemembering(one.view) ? whyIneligible(one, scene) : null;
    if (ineligibility !== null) ineligible.set(one, ineligibility);
  }
  const eligible = contenders.filter((one) => !ineligible.has(one));
  const [first, second] = eligible;
  if (first === undefined) return { ...noChoice, ineligible };
  if (isRing) return { ...chooseInRing(first, contenders), ineligible };
  const warning = contenders.length > 1 ? severalWarning : null;
  if (second === undefined) {
    const reason = 'writable, and follows no server';
    return { ...noChoice, primary: first, reason, warning, ineligible };
  }
  return { ...chooseAmong(eligible, scene), ineligible };
}

/** Whether several servers of its kind may be written to, because they agree on every write. */
export function isOneOfMany({ galera, group }: ServerView): boolean {
  return galera !== null || (group !== null && !group.hasSinglePrimary);
}

/** Whether the gateway remembers such a primary. A cluster or a group knows its primary itself, by the votes of its members. */
export function isRemembering({ galera, group }: ServerView): boolean {
  return galera === null && group === null;
}

/** Chooses one writer, although there could be more: clients would see the conflicts between two. */
function chooseNode(nodes: readonly SeenCandidate[]): Choice {
  const clusters = new Set(nodes.map(({ view }) => clusterOf(view)));
  if (clusters.size > 1) return contested('they belong to different clusters');
  const primary = nodes[0] as SeenCandidate;
  return { ...noChoice, primary, reason: 'the first writable node in the order of host' };
}

function clusterOf({ position, group }: ServerView): string {
  return position?.kind === 'galera' ? position.cluster : (group?.name ?? '');
}

function chooseInRing(first: SeenCandidate, ring: readonly SeenCandidate[]): Choice {
  return ring.length === 1
    ? { ...noChoice, primary: first, reason: 'the only writable one of those in a ring' }
    : { ...noChoice, primary: first, reason: 'the first of those in a ring', warning: ringWarning };
}

/** Chooses among several eligible candidates. */
function chooseAmong(eligible: readonly SeenCandidate[], scene: Scene): Choice {
  const inUse = eligible.find((one) => isInUse(one, scene));
  // The writes since its latest view are not known yet. Once it takes none, its view is as good as any other.
  if (inUse !== undefined && eligible.some((one) => isAheadOfView(one, inUse))) {
    return settled(inUse, 'in use, and not probed since another one was found writable');
  }
  const remembered = eligible.find((one) => isRemembered(one, scene));
  if (remembered !== undefined && mayStay(remembered, eligible, scene)) {
    return settled(remembered, 'the primary that is remembered');
  }
  const followed = eligible.filter((one) => isFollowed(one, eligible, scene));
  const complete = eligible.filter((one) => holdsOthers(one, eligible));
  const [only, another] = complete;
  if (only !== undefined && another === undefined) {
    // Nothing else shows which of them was promoted, and histories must not be the only evidence.
    if (scene.memory !== null || followed.every((one) => one === only)) {
      return settled(only, 'its history has all that the other writable candidates have');
    }
    return contested('the others follow one that lacks what another one holds');
  }
  const leaders =
    complete.length === 0 ? followed : complete.filter((one) => followed.includes(one));
  const [leader, rival] = leaders;
  const isKnown = complete.length === 0 || scene.memory !== null;
  if (leader !== undefined && rival === undefined && isKnown && !isOutdone(leader, eligible)) {
    return settled(leader, 'the other candidates follow it');
  }
  if (remembered !== undefined && complete.includes(remembered) && rival === undefined) {
    return settled(remembered, 'the primary that is remembered, and nothing is written elsewhere');
  }
  return contested(
    complete.length === 0
      ? 'their histories differ, and nothing shows which one the others follow'
      : 'their histories are the same, and nothing shows which one is the former primary',
  );
}

/** Whether the remembered primary may stay: nothing was written elsewhere, it has not restarted, and no replica has left it. */
function mayStay(
  primary: SeenCandidate,
  eligible: readonly SeenCandidate[],
  scene: Scene,
): boolean {
  if (hasRestarted(primary, scene)) return false;
  if (eligible.some((one) => one !== primary && holdsAllOf(primary, one) === false)) return false;
  return !scene.seen.some(
    (one) =>
      wasBehindPrimary(one, scene) &&
      sourcesOf(one).length > 0 &&
      !isBehindByMemory(one, primary, scene),
  );
}

function isInUse({ view }: SeenCandidate, { reference, isInUse }: Scene): boolean {
  return isInUse && view.identity.name === reference?.identity.name;
}

function isAheadOfView(one: SeenCandidate, inUse: SeenCandidate): boolean {
  const { view } = one;
  return view.askedAt > inUse.view.askedAt && holdsViews(inUse.view, [view]) !== true;
}

/** Whether it holds all that any of the others has shown, also since its own latest view. */
function holdsOthers(one: SeenCandidate, eligible: readonly SeenCandidate[]): boolean {
  return eligible.every((other) => other === one || holdsViews(one.view, [other.view]) === true);
}

/** Whether another one holds all that it has, and more. */
function isOutdone(one: SeenCandidate, eligible: readonly SeenCandidate[]): boolean {
  return eligible.some(
    (other) => other !== one && holdsAllOf(other, one) === true && holdsAllOf(one, other) === false,
  );
}

function isFollowed(one: SeenCandidate, eligible: readonly SeenCandidate[], scene: Scene): boolean {
  const others = scene.seen.filter((other) => !eligible.includes(other));
  return others.some((other) => isBehind(other, one, scene) || isFedBy(other, one, eligible));
}

/**
 * If the account may not see which server a replica follows, or whether it follows one (MySQL), the histories decide: `source` holds all that
 * the replica has, and every other eligible server lacks some of it.
 */
function isFedBy(
  other: SeenCandidate,
  source: SeenCandidate,
  eligible: readonly SeenCandidate[],
): boolean {
  const { following } = other.view;
  const isKnown =
    following.kind === 'none' || (following.kind === 'listed' && following.sources.length > 0);
  if (isKnown) return false;
  const lacksIt = (rival: SeenCandidate) => rival === source || holdsAllOf(rival, other) === false;
  return holdsAllOf(source, other) === true && eligible.every(lacksIt);
}

function settled(primary: SeenCandidate, reason: string): Choice {
  return { ...noChoice, primary, reason, warning: severalWarning };
}

function contested(reason: string): Choice {
  return { ...noChoice, isContested: true, reason, warning: `two primaries: ${reason}` };
}
