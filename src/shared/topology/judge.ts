// Who of several candidates takes writes, who may be read from, and why: decided from what all gateways see alike.
// Pure. Must not know how the candidates are asked, nor who decided what before.
import { isSameServer, type ServerIdentity } from '../mysql/identity.ts';
import { hasAllOf, lastWriter } from './position.ts';
import type { ServerView } from './server-view.ts';

/** What is known of one candidate. */
export type Seen =
  /** The latest look at it, and those before, the youngest first: of two servers no two looks are at one moment. */
  | {
      readonly view: ServerView;
      readonly earlier: readonly ServerView[];
      /** It could be written to, and another was chosen: alone it needs all that `reference` had. */
      readonly isPassedOver: boolean;
      /** The primary that it was found to be a replica of last; null: of none, or it has been something else since. */
      readonly provenBy: ServerIdentity | null;
    }
  /** Why it does not count now, and the number (server_id) that it had; null: that was never known. */
  | { readonly view: null; readonly reason: string; readonly number: string | null };

/** What a candidate may be used for. */
export type Role = 'primary' | 'replica' | 'unusable';

export type Verdict = { readonly role: Role; readonly reason: string };

/** What is decided of all candidates, in their order. */
export type Judgement = {
  readonly verdicts: readonly Verdict[];
  /** Where writes go; null: nowhere. */
  readonly primary: number | null;
  /** Several could be written to, and it cannot be told which should: none is. */
  readonly isContested: boolean;
  /** What an operator should know all the same; null: nothing. */
  readonly warning: string | null;
};

/** A candidate that counts, with its place among all. */
type Standing = Extract<Seen, { readonly view: ServerView }> & { readonly at: number };

/** What is decided of those that could be written to. */
type Choice = Pick<Judgement, 'primary' | 'isContested' | 'warning'> & { readonly reason: string };

/** So long a replica may show what its primary does not show yet, in ms: MySQL's replicas apply what the primary has still to commit. */
const aheadMs = 1_000;
const nobody = { primary: null, isContested: false, warning: null } as const;
/** Of a node of Galera that has all that its cluster has, and says so. */
const synced = 4;

/**
 * @param candidates in the order of `host`
 * @param reference the latest look at the server that was written to last: while there is none now, its replicas are measured by it
 */
export function judge(candidates: readonly Seen[], reference: ServerView | null): Judgement {
  const verdicts: Verdict[] = candidates.map((seen) =>
    seen.view === null ? unusable(seen.reason) : unusable('not judged'),
  );
  const standing = candidates.flatMap((seen, at) => (seen.view === null ? [] : [{ ...seen, at }]));
  const fit = standing.filter((one) => {
    const reason = whyUnfit(one.view) ?? whyDoubled(one, standing);
    if (reason !== null) verdicts[one.at] = unusable(reason);
    return reason === null;
  });
  const choice = refuseLeftBehind(choose(fit, reference), fit, reference);
  const absent = new Set(candidates.flatMap((seen) => (seen.view === null ? [seen.number] : [])));
  const { primary, isContested, warning } = choice;
  const source = fit.find(({ at }) => at === primary) ?? null;
  for (const one of fit) {
    verdicts[one.at] =
      one === source
        ? { role: 'primary', reason: choice.reason }
        : judgeReplica(one, { source, reference, fit, absent, isContested });
  }
  return { verdicts, primary, isContested, warning };
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

/**
 * A server that was left behind once would take writes that nobody else has: alone it must have caught up. One that others follow was
 * chosen by its operator.
 */
function refuseLeftBehind(
  choice: Choice,
  fit: readonly Standing[],
  reference: ServerView | null,
): Choice {
  const chosen = fit.find(({ at }) => at === choice.primary);
  if (chosen === undefined || reference === null || !isLeftBehind(chosen, reference)) return choice;
  const isAlone = fit.every(
    (one) =>
      one === chosen || !((!one.view.isReadOnly && followsNobody(one)) || follows(one, chosen)),
  );
  return isAlone ? { ...nobody, reason: '' } : choice;
}

function isLeftBehind({ view, isPassedOver }: Standing, reference: ServerView): boolean {
  if (!isPassedOver || reference.identity.name === view.identity.name) return false;
  if (reference.position === null || view.position === null) return true;
  return hasAllOf(view.position, reference.position) !== true;
}

function choose(fit: readonly Standing[], reference: ServerView | null): Choice {
  const writable = fit.filter(({ view }) => !view.isReadOnly);
  const nodes = writable.filter(({ view }) => isOneOfMany(view));
  if (nodes.length > 0 && nodes.length === writable.length) return chooseNode(nodes);
  const alone = writable.filter(followsNobody);
  const [first, second] = alone;
  if (first === undefined) return chooseInRing(writable, fit);
  if (second === undefined) {
    return { ...nobody, primary: first.at, reason: 'writable, and follows no server' };
  }
  return keepInUse(chooseAmong(alone, fit), alone, reference);
}

/** As far as the account may see it. */
function followsNobody({ view }: Standing): boolean {
  return view.following.kind !== 'somebody';
}

/** Whether several of its kind may be written to, and all agree on what was. */
function isOneOfMany({ galera, group }: ServerView): boolean {
  return galera !== null || (group !== null && !group.hasSinglePrimary);
}

/** One writer, though there could be more: conflicts between two would be told to clients. */
function chooseNode(nodes: readonly Standing[]): Choice {
  const clusters = new Set(nodes.map(({ view }) => clusterOf(view)));
  if (clusters.size > 1) return contested('they belong to different clusters');
  const first = nodes[0] as Standing;
  return { ...nobody, primary: first.at, reason: 'the first writable node in the order of host' };
}

function clusterOf({ position, group }: ServerView): string {
  return position?.kind === 'galera' ? position.cluster : (group?.name ?? '');
}

/** Servers that follow each other do so on purpose: one that is writable is written to, as long as all see it alike. */
function chooseInRing(writable: readonly Standing[], fit: readonly Standing[]): Choice {
  const [first, second] = writable.filter((one) => isUpstream(one, one, fit));
  if (first === undefined) return { ...nobody, reason: '' };
  if (second === undefined) {
    return { ...nobody, primary: first.at, reason: 'the only writable one of those in a ring' };
  }
  const warning = 'candidates follow each other and can all be written to: the first of host is';
  return { ...nobody, primary: first.at, warning, reason: 'the first of those in a ring' };
}

function follows({ view: { following } }: Standing, { view: { number } }: Standing): boolean {
  return following.kind === 'somebody' && following.servers.includes(number);
}

/** Whether what is written to `source` comes to `one`, through others where need be. */
function isUpstream(source: Standing, one: Standing, fit: readonly Standing[]): boolean {
  const asked = new Set<Standing>();
  const comesTo = (other: Standing): boolean => {
    if (asked.has(other)) return false;
    asked.add(other);
    return fit.some((next) => follows(other, next) && (next === source || comesTo(next)));
  };
  return comesTo(one);
}

/**
 * Another one than that which is written to is chosen by looks at both: where the latest at the one in use is the older, what has been
 * written there since is not known yet.
 */
function keepInUse(
  choice: Choice,
  alone: readonly Standing[],
  reference: ServerView | null,
): Choice {
  const inUse = alone.find(({ view }) => view.identity.name === reference?.identity.name);
  const chosen = alone.find(({ at }) => at === choice.primary);
  if (inUse === undefined || chosen === undefined) return choice;
  if (chosen.view.askedAt <= inUse.view.askedAt) return choice;
  return settled(inUse, 'in use, and not looked at since another one was found writable');
}

/** Several that follow nobody and can be written to. */
function chooseAmong(alone: readonly Standing[], fit: readonly Standing[]): Choice {
  const complete = alone.filter((one) =>
    alone.every((other) => other === one || holdsAllOf(one, other) === true),
  );
  const [only, another] = complete;
  if (only !== undefined && another === undefined) {
    return settled(only, 'its history has all that the other writable candidates have');
  }
  const others = fit.filter((other) => !alone.includes(other));
  const leaders = (complete.length > 0 ? complete : alone).filter((one) =>
    others.some((other) => follows(other, one) || isFedBy(other, one, alone)),
  );
  const [leader, rival] = leaders;
  if (leader !== undefined && rival === undefined) {
    return settled(leader, 'the other candidates follow it');
  }
  if (only === undefined || rival !== undefined) {
    return contested('their histories differ, and it cannot be told whom the others follow');
  }
  const writer = complete.find(({ view }) => view.number === writerOf(view));
  return settled(writer ?? only, 'of several with the same history it was written to last');
}

/**
 * Whom a replica follows that may not be seen, or whether it follows anybody (MySQL), is told by what it has: all of that one of them had,
 * and not each of the rivals.
 */
function isFedBy(other: Standing, source: Standing, alone: readonly Standing[]): boolean {
  const { following } = other.view;
  const isTold =
    following.kind === 'nobody' || (following.kind === 'somebody' && following.servers.length > 0);
  if (isTold) return false;
  const lacksIt = (rival: Standing) => rival === source || holdsAllOf(rival, other) === false;
  return holdsAllOf(source, other) === true && alone.every(lacksIt);
}

function writerOf({ position }: ServerView): string | null {
  return position === null ? null : lastWriter(position);
}

function settled({ at }: Standing, reason: string): Choice {
  const warning = 'several candidates can be written to: set read_only on all but one';
  return { ...nobody, primary: at, warning, reason };
}

function contested(reason: string): Choice {
  return { ...nobody, isContested: true, reason, warning: `two primaries: ${reason}` };
}

/** Whether one had, at its latest look, all that another had had by then; null: it cannot be told, or not yet. */
function holdsAllOf(one: Standing, other: Standing): boolean | null {
  return compare(one.view, [other.view, ...other.earlier]);
}

function compare(view: ServerView, looks: readonly ServerView[]): boolean | null {
  const { position, askedAt } = view;
  if (position === null) return null;
  const holds = (look: ServerView) => look.position === null || hasAllOf(position, look.position);
  const [latest] = looks;
  // What it has now it had all the more before.
  if (latest !== undefined && holds(latest) === true) return true;
  const then = looks.find((look) => look.askedAt <= askedAt);
  return then === undefined ? null : holds(then);
}

/** What a replica is judged by. */
type Others = {
  /** The primary; null: there is none now. */
  readonly source: Standing | null;
  readonly reference: ServerView | null;
  readonly fit: readonly Standing[];
  /** The numbers of those that do not count now. */
  readonly absent: ReadonlySet<string | null>;
  readonly isContested: boolean;
};

function judgeReplica(
  one: Standing,
  { source, reference, fit, absent, isContested }: Others,
): Verdict {
  const { view } = one;
  const isNode = isOneOfMany(view);
  const { following } = view;
  if (!isNode && following.kind !== 'somebody') {
    if (!view.isReadOnly) {
      return unusable(whyNotWritten(source, isContested));
    }
    if (following.kind === 'nobody' && view.group === null) {
      return unusable('read-only, and follows no server');
    }
  }
  const against = source?.view ?? reference;
  if (against === null) return unusable('there is no primary to compare it with');
  if (!isNode && !isBehind(one, against, fit, absent, [])) {
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
  const found = compare(primary, looks);
  if (found !== false || provenBy === null || !isSameServer(provenBy, primary.identity)) {
    return found;
  }
  const settled = looks.filter(({ askedAt }) => askedAt <= primary.askedAt - aheadMs);
  return compare(primary, settled) !== false;
}

function whyReplica({ identity, following }: ServerView, primary: ServerView): string {
  if (following.kind === 'somebody') return 'follows the primary';
  if (identity.name === primary.identity.name) return 'the primary before, read-only now';
  return 'read-only, and holds nothing that the primary lacks';
}

function whyNotWritten(source: Standing | null, isContested: boolean): string {
  if (isContested) return 'one of two primaries';
  if (source !== null) return 'writable beside the primary';
  return 'writable, but was left behind: it lacks what the primary before it had';
}

/** Whether it follows the primary, or somebody who is no candidate, or a candidate of whom the same is true. */
function isBehind(
  one: Standing,
  primary: ServerView,
  fit: readonly Standing[],
  absent: ReadonlySet<string | null>,
  below: readonly Standing[],
): boolean {
  const { following } = one.view;
  if (following.kind !== 'somebody') return below.length === 0;
  if (following.servers.length === 0) return true;
  return following.servers.some((server) => {
    if (server === primary.number) return true;
    const upstream = fit.find(({ view }) => view.number === server);
    if (upstream === undefined) return !absent.has(server);
    if (below.includes(upstream)) return false;
    return isBehind(upstream, primary, fit, absent, [...below, one]);
  });
}

function unusable(reason: string): Verdict {
  return { role: 'unusable', reason };
}
