// Which of several candidates takes writes, which may be read from, why, and what is to be remembered of it: decided from what is seen
// and what is remembered.
// Pure. Must not know how the candidates are asked, nor where the memory is kept.
import { isSameServer } from '../mysql/identity.ts';
import { type Choice, choose, isOneOfMany, isRemembering } from './choice.ts';
import { type Refusal, refusals } from './eligibility.ts';
import { learn } from './learn.ts';
import type { PrimaryMemory } from './primary-memory.ts';
import {
  holdsLooks,
  isSourceView,
  nameOf,
  numberOf,
  type Scene,
  type Seen,
  type Standing,
  seenSource,
  sourcesOf,
  standingOf,
} from './scene.ts';
import type { ServerView } from './server-view.ts';

/** What a candidate may be used for. */
export type Role = 'primary' | 'replica' | 'unusable';

export type Verdict = { readonly role: Role; readonly reason: string };

/** Why writes go nowhere, as metrics name it. */
export const noPrimaryReasons = [
  'none_writable',
  ...refusals,
  'returning',
  'two_primaries',
  'not_accepted',
] as const;

/** Why writes go nowhere. */
export type NoPrimary = {
  readonly reason: (typeof noPrimaryReasons)[number];
  /** What is seen or remembered that says so, for people; no words of a server's, no hosts. */
  readonly evidence: string;
};

/** What is decided of all candidates, in their order. */
export type Judgement = {
  readonly verdicts: readonly Verdict[];
  /** Where writes go; null: nowhere. */
  readonly primary: number | null;
  /** Null: there is a primary. */
  readonly none: NoPrimary | null;
  /** Several could be written to, and it cannot be told which should: none is. */
  readonly isContested: boolean;
  /** What an operator should know all the same; null: nothing. */
  readonly warning: string | null;
  /** What is to be remembered from now on: before the first write to a new primary. Null: nothing. */
  readonly memory: PrimaryMemory | null;
};

/** So long a replica may show what its primary does not show yet, in ms: MySQL's replicas apply what the primary has still to commit. */
const aheadMs = 1_000;
/** Of a node of Galera that has all that its cluster has, and says so. */
const synced = 4;

/**
 * @param candidates in the order of `host`
 * @param reference the latest look at the server that was written to last: while there is none now, its replicas are measured by it
 * @param memory what all workers remember; null: nothing yet
 */
export function judge(
  candidates: readonly Seen[],
  reference: ServerView | null,
  memory: PrimaryMemory | null,
): Judgement {
  const verdicts: Verdict[] = candidates.map((seen) =>
    unusable(seen.view === null ? seen.reason : 'not judged'),
  );
  const all = standingOf(candidates);
  const standing = all.filter((one) => {
    const reason = whyUnfit(one.view) ?? whyDoubled(one, all);
    if (reason !== null) verdicts[one.at] = unusable(reason);
    return reason === null;
  });
  const scene: Scene = { standing, memory, reference };
  const choice = choose(scene);
  // A server that returns is evidence at its first look, and used at its third.
  const source = choice.primary?.notYet === null ? choice.primary : null;
  const absent = new Set(candidates.flatMap((seen) => (seen.view === null ? [seen.number] : [])));
  for (const one of standing) {
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
    memory: remembers ? learn(scene, source) : memory,
  };
}

/** Why a node of a cluster, or a member of a group, cannot be used at all; null: it can, or is neither. */
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

/** One server by two names is one server: as two it would contest itself. */
function whyDoubled({ at, view }: Standing, standing: readonly Standing[]): string | null {
  const first = standing.find((one) => isSameServer(one.view.identity, view.identity));
  return first === undefined || first.at === at ? null : 'the same server as one before it in host';
}

function whyNone({ primary, isContested, reason, refused }: Choice): NoPrimary {
  if (primary !== null) return { reason: 'returning', evidence: `${nameOf(primary)} has returned` };
  if (isContested) return { reason: 'two_primaries', evidence: reason };
  const [first] = refused.values();
  if (first === undefined) {
    return { reason: 'none_writable', evidence: 'no candidate that is seen can be written to' };
  }
  const evidence = [...refused].map(([one, refusal]) => `${nameOf(one)} is ${whyNot(refusal)}`);
  return { reason: first.rule, evidence: evidence.join('. ') };
}

function whyNot({ evidence }: Refusal): string {
  return `writable, but ${evidence}`;
}

/** What a candidate is judged by that is not the primary. */
type Others = {
  /** The primary; null: there is none now. */
  readonly source: Standing | null;
  /** The numbers of those that are not seen now. */
  readonly absent: ReadonlySet<string | null>;
  readonly choice: Choice;
  readonly scene: Scene;
};

function judgeOther(one: Standing, others: Others): Verdict {
  const { source, choice, scene } = others;
  const { view } = one;
  if (one.notYet !== null) return unusable(one.notYet);
  const isNode = isOneOfMany(view);
  const { following } = view;
  if (!isNode && following.kind !== 'somebody') {
    if (!view.isReadOnly) {
      return unusable(whyNotWritten(one, source, choice));
    }
    if (following.kind === 'nobody' && view.group === null) {
      return unusable('read-only, and follows no server');
    }
  }
  const against = source?.view ?? scene.reference;
  if (against === null) return unusable('there is no primary to compare it with');
  if (!isNode && !isReplicaOf(one, against, others, [])) {
    return unusable('it follows another server than the primary');
  }
  if (view.position === null) return unusable('its position cannot be told: there are no GTIDs');
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
 * Whether the primary has what its replica has; null: not compared yet. One that was a replica of the same primary before has got nothing
 * from another since: that it is ahead for a moment makes no ghosts.
 */
function isContainedIn(primary: ServerView, { view, earlier, provenBy }: Standing): boolean | null {
  const looks = [view, ...earlier];
  const found = holdsLooks(primary, looks);
  if (found !== false || provenBy === null || !isSameServer(provenBy, primary.identity)) {
    return found;
  }
  const settled = looks.filter(({ askedAt }) => askedAt <= primary.askedAt - aheadMs);
  return holdsLooks(primary, settled) !== false;
}

function whyReplica({ identity, following }: ServerView, primary: ServerView): string {
  if (following.kind === 'somebody') return 'follows the primary';
  if (identity.name === primary.identity.name) return 'the primary before, read-only now';
  return 'read-only, and holds nothing that the primary lacks';
}

function whyNotWritten(one: Standing, source: Standing | null, choice: Choice): string {
  if (choice.isContested) return 'one of two primaries';
  if (source !== null) return 'writable beside the primary';
  const refusal = choice.refused.get(one);
  return refusal === undefined ? 'writable beside one that has returned' : whyNot(refusal);
}

/** Whether it follows the primary, or a server that is no candidate, or a candidate of which the same is true. */
function isReplicaOf(
  one: Standing,
  primary: ServerView,
  others: Others,
  below: readonly Standing[],
): boolean {
  const { scene, absent } = others;
  if (one.view.following.kind !== 'somebody') return below.length === 0;
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
