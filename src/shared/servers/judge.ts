// Decides which of several candidates takes writes, which may be read from, why, and what to remember: from what is seen and what is
// remembered. Pure.
import { isSameServer } from '../mysql/identity.ts';
import { type Choice, choose, isOneOfMany, isRemembering } from './choice.ts';
import { eligibilityRules, type Ineligibility } from './eligibility.ts';
import { learn } from './learn.ts';
import type { PrimaryMemory } from './primary-memory.ts';
import {
  type CandidateState,
  holdsViews,
  isSourceView,
  type Known,
  nameOf,
  numberOf,
  type Scene,
  type SeenCandidate,
  seenCandidates,
  seenSource,
  sourcesOf,
} from './scene.ts';
import type { ServerView } from './server-view.ts';

/** The use of a candidate. */
export type Role = 'primary' | 'replica' | 'unusable';

export type Verdict = { readonly role: Role; readonly reason: string };

/** Why no server takes writes, as metrics name it. */
export const noPrimaryReasons = [
  'none_writable',
  ...eligibilityRules,
  'returning',
  'two_primaries',
  'not_accepted',
] as const;

/** Why no server takes writes. */
export type NoPrimary = {
  readonly reason: (typeof noPrimaryReasons)[number];
  /** The facts that show it, seen or remembered, for people: no text of a server's, no hosts. */
  readonly evidence: string;
};

/** The decision about all candidates, in their order. */
export type Judgement = {
  readonly verdicts: readonly Verdict[];
  /** The place of the server that takes writes; null: none does. */
  readonly primary: number | null;
  /** Null: there is a primary. */
  readonly none: NoPrimary | null;
  /** Several servers could take writes, and nothing shows which one should: none does. */
  readonly isContested: boolean;
  /** A warning for operators although writes go on; null: none. */
  readonly warning: string | null;
  /** The memory that must be stored before the first write to a new primary; null: none. */
  readonly memory: PrimaryMemory | null;
};

/** How long a replica may show what its primary does not show yet, in ms: MySQL's replicas apply what the primary has yet to commit. */
const aheadMs = 1_000;
/** The state of a Galera node that has all that its cluster has. */
const synced = 4;

/** @param candidates in the order of `host` */
export function judge(candidates: readonly CandidateState[], known: Known): Judgement {
  const verdicts: Verdict[] = candidates.map((seen) =>
    unusable(seen.view === null ? seen.reason : 'not judged'),
  );
  const all = seenCandidates(candidates);
  const seen = all.filter((one) => {
    const reason = whyUnfit(one.view) ?? whyDoubled(one, all);
    if (reason !== null) verdicts[one.at] = unusable(reason);
    return reason === null;
  });
  const scene: Scene = { ...known, seen };
  const choice = choose(scene);
  // A server that returns is evidence after its first probe, and used after its third.
  const source = choice.primary?.notYet === null ? choice.primary : null;
  const absent = new Set(candidates.flatMap((seen) => (seen.view === null ? [seen.number] : [])));
  for (const one of seen) {
    verdicts[one.at] =
      one === source
        ? { role: 'primary', reason: choice.reason }
        : judgeOther(one, { source, absent, choice, scene });
  }
  const remembers = choice.primary === null || isRemembering(choice.primary.view);
  return {
    verdicts,
    primary: source?.at ?? null,
    none: source === null ? whyNone(choice) : null,
    isContested: choice.isContested,
    warning: choice.warning,
    memory: remembers ? learn(scene, source) : known.memory,
  };
}

/** Why a node of a cluster, or a member of a group, cannot be used; null: it can, or it is neither. */
function whyUnfit({ galera, group }: ServerView): string | null {
  if (galera !== null) {
    if (!galera.isReady) return 'the Galera node is not ready (wsrep_ready is OFF)';
    if (galera.rejectsQueries) return 'the Galera node rejects queries (wsrep_reject_queries)';
    if (galera.state !== synced) return `the Galera node is not synced (state ${galera.state})`;
  }
  if (group !== null && group.state !== null && group.state !== 'ONLINE') {
    return `the member of the group is ${group.state}`;
  }
  if (group?.takesPart === false) return 'the server has not joined its group';
  if (group?.hasMajority === false) return 'the member has lost the majority of its group';
  return null;
}

/** A server with two names in `host` counts once. Otherwise it would contest itself. */
function whyDoubled({ at, view }: SeenCandidate, all: readonly SeenCandidate[]): string | null {
  const first = all.find((one) => isSameServer(one.view.identity, view.identity));
  return first === undefined || first.at === at ? null : 'the same server as one before it in host';
}

function whyNone({ primary, isContested, reason, ineligible }: Choice): NoPrimary {
  if (primary !== null) return { reason: 'returning', evidence: `${nameOf(primary)} has returned` };
  if (isContested) return { reason: 'two_primaries', evidence: reason };
  const [first] = ineligible.values();
  if (first === undefined) {
    return { reason: 'none_writable', evidence: 'no candidate that is seen can be written to' };
  }
  const evidence = [...ineligible].map(
    ([one, ineligibility]) => `${nameOf(one)} is ${whyNot(ineligibility)}`,
  );
  return { reason: first.rule, evidence: evidence.join('. ') };
}

function whyNot({ evidence }: Ineligibility): string {
  return `writable, but ${evidence}`;
}

/** The basis for judging the candidates besides the primary. */
type Others = {
  /** The primary; null: there is none now. */
  readonly source: SeenCandidate | null;
  /** The numbers of the candidates that are not seen now. */
  readonly absent: ReadonlySet<string | null>;
  readonly choice: Choice;
  readonly scene: Scene;
};

function judgeOther(one: SeenCandidate, others: Others): Verdict {
  const { source, choice, scene } = others;
  const { view } = one;
  if (one.notYet !== null) return unusable(one.notYet);
  const isNode = isOneOfMany(view);
  const { following } = view;
  if (!isNode && following.kind !== 'listed') {
    if (!view.isReadOnly) {
      return unusable(whyNotWritten(one, source, choice));
    }
    if (following.kind === 'none' && view.group === null) {
      return unusable('read-only, and follows no server');
    }
  }
  const against = source?.view ?? scene.reference;
  if (against === null) return unusable('there is no primary to compare it with');
  if (!isNode && !isReplicaOf(one, against, others, [])) {
    return unusable('it follows another server than the primary');
  }
  if (view.position === null) return unusable('it has no position: there are no GTIDs');
  const isContained = isContainedIn(against, one);
  if (isContained === false && !isNode) return unusable('it holds what the primary lacks');
  if (isContained === null && source !== null && !isNode) {
    return unusable('it has not been compared with the primary yet');
  }
  return {
    role: 'replica',
    reason: isNode ? 'a node beside the writer' : whyReplica(view, against),
  };
}

/**
 * Whether the primary has all that its replica has; null: not compared yet. A server that was already a replica of this primary has received
 * nothing from another one since, so it may be ahead for a moment.
 */
function isContainedIn(
  primary: ServerView,
  { view, earlier, provenBy }: SeenCandidate,
): boolean | null {
  const views = [view, ...earlier];
  const found = holdsViews(primary, views);
  if (found !== false || provenBy === null || !isSameServer(provenBy, primary.identity)) {
    return found;
  }
  const settled = views.filter(({ askedAt }) => askedAt <= primary.askedAt - aheadMs);
  return holdsViews(primary, settled) !== false;
}

function whyReplica({ identity, following }: ServerView, primary: ServerView): string {
  if (following.kind === 'listed') return 'follows the primary';
  if (identity.name === primary.identity.name) return 'the primary before, read-only now';
  return 'read-only, and holds nothing that the primary lacks';
}

function whyNotWritten(one: SeenCandidate, source: SeenCandidate | null, choice: Choice): string {
  if (choice.isContested) return 'one of two primaries';
  if (source !== null) return 'writable beside the primary';
  const ineligibility = choice.ineligible.get(one);
  return ineligibility === undefined
    ? 'writable beside one that has returned'
    : whyNot(ineligibility);
}

/** Whether it follows the primary, or a server that is no candidate, or a candidate for which the same is true. */
function isReplicaOf(
  one: SeenCandidate,
  primary: ServerView,
  others: Others,
  below: readonly SeenCandidate[],
): boolean {
  const { scene, absent } = others;
  if (one.view.following.kind !== 'listed') return below.length === 0;
  const sources = sourcesOf(one);
  if (sources.length === 0) return true;
  return sources.some((source) => {
    if (isSourceView(source, primary, scene)) return true;
    const upstream = seenSource(source, scene);
    if (upstream === null) return !absent.has(numberOf(source, scene));
    if (below.includes(upstream)) return false;
    return isReplicaOf(upstream, primary, others, [...below, one]);
  });
}

function unusable(reason: string): Verdict {
  return { role: 'unusable', reason };
}
