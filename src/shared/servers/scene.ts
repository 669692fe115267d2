// The basis of a decision: the candidates that are seen, the memory, and by both, which server follows which. Pure.
import { isSameServer, type ServerIdentity } from '../mysql/identity.ts';
import { hasAllOf } from './position.ts';
import {
  identityOf,
  type PrimaryMemory,
  type RememberedReplica,
  type RememberedSource,
} from './primary-memory.ts';
import type { ServerView, Source } from './server-view.ts';

/** The knowledge about one candidate. */
export type CandidateState =
  /** Its latest view, and earlier ones, the latest first: no two servers are probed at the same moment. */
  | {
      readonly view: ServerView;
      readonly earlier: readonly ServerView[];
      /** As written in `host`. */
      readonly address: string;
      /** The last primary that it was found to be a replica of; null: none, or it has been something else since. */
      readonly provenBy: ServerIdentity | null;
      /** Why it may not be used yet although it answers; null: it may. Its view counts as evidence in both cases. */
      readonly notYet: string | null;
    }
  /** Why it cannot be seen now, and its last server_id; null: that was never known. */
  | { readonly view: null; readonly reason: string; readonly number: string | null };

/** A candidate that is seen, with its place in the order of `host`. */
export type SeenCandidate = Extract<CandidateState, { readonly view: ServerView }> & {
  readonly at: number;
  /** The name by which it is remembered. */
  readonly identity: string;
};

/** The knowledge from before. */
export type Known = {
  /** The memory that all workers share; null: none yet. */
  readonly memory: PrimaryMemory | null;
  /** The latest view of the last primary: while there is none, replicas are compared with it. Null: there was none. */
  readonly reference: ServerView | null;
  /** Whether the last primary takes writes now. */
  readonly isInUse: boolean;
};

/** All that a decision depends on. */
export type Scene = Known & {
  /** The candidates that are seen and usable, each server once. */
  readonly seen: readonly SeenCandidate[];
};

export function seenCandidates(candidates: readonly CandidateState[]): readonly SeenCandidate[] {
  return candidates.flatMap((seen, at) =>
    seen.view === null ? [] : [{ ...seen, at, identity: identityOf(seen.address, seen.view) }],
  );
}

/** A name for people, without the host: clients that ask whether a gateway is ready need not know it. */
export function nameOf({ at }: SeenCandidate): string {
  return `candidate ${at + 1}`;
}

/** The servers that it follows; none: it follows no server, or the account may not see them. */
export function sourcesOf({ view: { following } }: SeenCandidate): readonly Source[] {
  return following.kind === 'listed' ? following.sources : [];
}

/** Whether it follows no server, as far as the account may see. */
export function followsNone({ view }: SeenCandidate): boolean {
  return view.following.kind !== 'listed';
}

/** Whether this is the remembered primary. */
export function isRemembered({ identity }: SeenCandidate, { memory }: Scene): boolean {
  return memory?.primary.identity === identity;
}

/** Whether the remembered primary has restarted since it was last seen. */
export function hasRestarted({ view }: Pick<SeenCandidate, 'view'>, { memory }: Scene): boolean {
  if (memory === null) return false;
  const { name } = view.identity;
  return !isSameServer(view.identity, { name, startedAt: memory.primary.startedAt });
}

/** The memory of it as a replica; null: none. */
export function rememberedReplica(identity: string, { memory }: Scene): RememberedReplica | null {
  return memory?.replicas.find((one) => one.identity === identity) ?? null;
}

/** Whether it was seen behind the remembered primary in the present term. */
export function wasBehindPrimary(one: SeenCandidate, scene: Scene): boolean {
  const remembered = rememberedReplica(one.identity, scene);
  return remembered !== null && remembered.term === scene.memory?.term;
}

/** The candidate that a source is; null: it cannot be seen. */
export function seenSource(source: RememberedSource, scene: Scene): SeenCandidate | null {
  const found = scene.seen.find(({ view: { uuid, number }, address }) =>
    isNamed(source, { uuid, number, address }, scene),
  );
  return found ?? null;
}

/** Whether a source is the remembered primary. */
export function isRememberedSource(source: RememberedSource, scene: Scene): boolean {
  const { memory } = scene;
  if (memory === null) return false;
  const { identity, number, address } = memory.primary;
  return isNamed(source, { uuid: uuidOf(identity), number, address }, scene);
}

/** Whether a source is the server of this view. */
export function isSourceView(
  source: RememberedSource,
  { uuid, number }: ServerView,
  scene: Scene,
): boolean {
  return isNamed(source, { uuid, number, address: null }, scene);
}

/** Whether two sources are the same server. */
export function isSameSource(one: RememberedSource, other: RememberedSource): boolean {
  if (one.uuid !== null && other.uuid !== null) return one.uuid === other.uuid;
  if (one.number !== null && other.number !== null) return one.number === other.number;
  return one.address === other.address;
}

/** Whether writes to `source` reach `one`, directly or through other servers that are seen. */
export function isBehind(one: SeenCandidate, source: SeenCandidate, scene: Scene): boolean {
  return reaches(one, source, scene, () => false, new Set());
}

/** The same, or both `one` and an unseen server that it follows were behind the remembered primary. */
export function isBehindByMemory(one: SeenCandidate, source: SeenCandidate, scene: Scene): boolean {
  const { memory } = scene;
  if (memory === null || !isRemembered(source, scene)) return isBehind(one, source, scene);
  const middles = memory.replicas.filter(({ term }) => term === memory.term);
  const isKnownChain = (two: SeenCandidate, unseen: Source): boolean => {
    const before = middles.find(({ identity }) => identity === two.identity);
    if (before === undefined || !isSameSource(before.follows, unseen)) return false;
    return middles.some(({ identity }) => isNamed(unseen, partsOf(identity), scene));
  };
  return reaches(one, source, scene, isKnownChain, new Set());
}

type ReachesUnseen = (one: SeenCandidate, source: Source) => boolean;

function reaches(
  one: SeenCandidate,
  target: SeenCandidate,
  scene: Scene,
  reachesUnseen: ReachesUnseen,
  asked: Set<SeenCandidate>,
): boolean {
  if (asked.has(one)) return false;
  asked.add(one);
  return sourcesOf(one).some((source) => {
    const next = seenSource(source, scene);
    if (next === null) return reachesUnseen(one, source);
    return next === target || reaches(next, target, scene, reachesUnseen, asked);
  });
}

/** Whether one had, at its latest view, all that another had by then; null: that is not known, or not yet. */
export function holdsAllOf(one: SeenCandidate, other: SeenCandidate): boolean | null {
  return holdsViews(one.view, [other.view, ...other.earlier]);
}

/** The same, by the views of the other server, the latest first. */
export function holdsViews(view: ServerView, views: readonly ServerView[]): boolean | null {
  const { position, askedAt } = view;
  if (position === null) return null;
  const holds = (one: ServerView) => one.position === null || hasAllOf(position, one.position);
  const [latest] = views;
  // If it has the latest position, it has all earlier ones.
  if (latest !== undefined && holds(latest) === true) return true;
  const then = views.find((one) => one.askedAt <= askedAt);
  return then === undefined ? null : holds(then);
}

/** How other servers name a server. */
type Named = {
  readonly uuid: string | null;
  readonly number: string | null;
  readonly address: string | null;
};

function isNamed(source: RememberedSource, server: Named, scene: Scene): boolean {
  if (source.uuid !== null && server.uuid !== null) return source.uuid === server.uuid;
  const number = numberOf(source, scene);
  if (number !== null && server.number !== null) return number === server.number;
  return source.address !== null && source.address === server.address;
}

/**
 * The server_id of a source; null: it is not known. A replica that was restarted while its source was away knows only an address. Other
 * replicas or the memory may know the server_id for it.
 */
export function numberOf({ number, address }: RememberedSource, scene: Scene): string | null {
  if (number !== null || address === null) return number;
  const known: RememberedSource[] = [
    ...scene.seen.flatMap(sourcesOf),
    ...(scene.memory?.replicas ?? []).map(({ follows }) => follows),
  ];
  return known.find((one) => one.number !== null && one.address === address)?.number ?? null;
}

/** Reads an identity: a uuid, or `<address>/<server_id>`. */
function partsOf(identity: string): Named {
  const uuid = uuidOf(identity);
  if (uuid !== null) return { uuid, number: null, address: null };
  const end = identity.lastIndexOf('/');
  return { uuid: null, number: identity.slice(end + 1), address: identity.slice(0, end) };
}

function uuidOf(identity: string): string | null {
  return identity.includes('/') ? null : identity;
}
