// Decides what to remember of a decision about the primary. Pure.
import { isDeepStrictEqual } from 'node:util';
import { formatPosition, hasAllOf, parsePosition } from './position.ts';
import {
  describePrimary,
  identityOf,
  type PrimaryMemory,
  type RememberedPrimary,
  type RememberedReplica,
  type RememberedSource,
} from './primary-memory.ts';
import {
  followsNone,
  hasRestarted,
  holdsAllOf,
  isBehindByMemory,
  isRemembered,
  isSameSource,
  numberOf,
  type Scene,
  type SeenCandidate,
  seenSource,
  sourcesOf,
} from './scene.ts';

/**
 * The memory after a decision: the one in force if nothing is new, and null if there is nothing to remember.
 * @param primary the server that takes writes; null: none
 */
export function learn(scene: Scene, primary: SeenCandidate | null): PrimaryMemory | null {
  const { memory } = scene;
  if (primary === null) return memory === null ? null : learnWithout(scene, memory);
  const isSame = isRemembered(primary, scene);
  const term = (memory?.term ?? 0) + (isSame ? 0 : 1);
  const begun = { ...scene, memory: { ...beginTerm(scene, primary), term } };
  const replicas = new Map(begun.memory.replicas.map((one) => [one.identity, one]));
  replicas.delete(primary.identity);
  for (const other of scene.seen) {
    if (other === primary) continue;
    const learnt = learnReplica(other, primary, begun);
    if (learnt === 'passed over') replicas.delete(other.identity);
    else if (learnt !== null) replicas.set(other.identity, learnt);
  }
  return finish(memory, { ...begun.memory, replicas: [...replicas.values()] });
}

/** While no server takes writes, notes servers that are seen as replicas for the first time, and the primary's last position. */
function learnWithout(scene: Scene, memory: PrimaryMemory): PrimaryMemory {
  const { reference } = scene;
  const known = new Set([memory.primary.identity, ...memory.replicas.map((one) => one.identity)]);
  const added = scene.seen.flatMap((one): RememberedReplica[] => {
    const [source] = sourcesOf(one);
    if (source === undefined || known.has(one.identity)) return [];
    return [{ identity: one.identity, follows: describeSource(source, null, scene), term: null }];
  });
  const { address, identity } = memory.primary;
  const isSeen = reference !== null && identityOf(address, reference) === identity;
  const primary = isSeen
    ? refresh(memory.primary, describePrimary(address, reference), false)
    : memory.primary;
  return finish(memory, { ...memory, primary, replicas: [...memory.replicas, ...added] });
}

/** The memory with this primary, before anything is known about its replicas. */
function beginTerm(scene: Scene, { address, identity, view }: SeenCandidate): PrimaryMemory {
  const { memory } = scene;
  const seen = describePrimary(address, view);
  const isSame = memory !== null && memory.primary.identity === identity;
  if (!isSame) {
    const former = memory === null ? [] : [...memory.former, memory.primary.identity];
    return {
      version: memory?.version ?? 0,
      term: (memory?.term ?? 0) + 1,
      primary: { ...seen, taken: seen.position },
      replicas: memory?.replicas ?? [],
      former: former.filter((one) => one !== identity),
    };
  }
  const restarted = hasRestarted({ view }, scene);
  return { ...memory, primary: refresh(memory.primary, seen, restarted) };
}

/** The remembered primary as it is seen now. Workers see it at different moments, so the later position is kept. */
function refresh(
  remembered: RememberedPrimary,
  seen: Omit<RememberedPrimary, 'taken'>,
  hasRestartedSince: boolean,
): RememberedPrimary {
  if (hasRestartedSince) return { ...seen, taken: remembered.taken };
  const [before, now] = [remembered.position, seen.position].map((text) =>
    text === null ? null : parsePosition(text),
  );
  const isOld = !now || (before && hasAllOf(before, now) === true);
  return isOld ? remembered : { ...remembered, position: formatPosition(now) };
}

/** The memory of another server; null: nothing new. */
function learnReplica(
  other: SeenCandidate,
  primary: SeenCandidate,
  scene: Scene & { readonly memory: PrimaryMemory },
): RememberedReplica | 'passed over' | null {
  const { identity } = other;
  const { memory } = scene;
  const before = memory.replicas.find((one) => one.identity === identity) ?? null;
  if (isBehindByMemory(other, primary, scene)) {
    const follows = describeSource(sourceBehind(other, primary, scene), before, scene);
    return { identity, follows, term: memory.term };
  }
  if (mayBeBehind(other, primary, memory)) {
    const follows = before?.follows ?? { number: null, uuid: null, address: null };
    return { identity, follows, term: memory.term };
  }
  if (!followsNone(other)) {
    if (before !== null) return null;
    const follows = describeSource(sourcesOf(other)[0] ?? null, null, scene);
    return { identity, follows, term: null };
  }
  return isPassedOver(other, primary) ? 'passed over' : null;
}

/**
 * Whether it was writable while the primary still was. In a switchover the next primary may be probed first, while the latest view of the former
 * one is a moment old. So the primary must have been probed after the other server answered, which is certain once that is probed again.
 */
function isPassedOver({ view, earlier: [before] }: SeenCandidate, primary: SeenCandidate): boolean {
  if (view.isReadOnly || before === undefined) return false;
  const wasWritable = !before.isReadOnly && before.following.kind !== 'listed';
  return wasWritable && primary.view.askedAt >= view.askedAt;
}

/** Whether the account may not see which server it follows, and it holds nothing that the primary lacks. */
function mayBeBehind(other: SeenCandidate, primary: SeenCandidate, memory: PrimaryMemory): boolean {
  const { following, isReadOnly } = other.view;
  const isHidden =
    following.kind === 'unknown'
      ? isReadOnly && !memory.former.includes(other.identity)
      : following.kind === 'listed' && following.sources.length === 0;
  return isHidden && holdsAllOf(primary, other) !== false;
}

function sourceBehind(
  other: SeenCandidate,
  primary: SeenCandidate,
  scene: Scene,
): RememberedSource | null {
  const sources = sourcesOf(other);
  const towards = sources.find((source) => {
    const seen = seenSource(source, scene);
    return seen !== null && (seen === primary || isBehindByMemory(seen, primary, scene));
  });
  return towards ?? sources[0] ?? null;
}

/** Describes a source. If the replica knows less of the same source than before, the memory fills the gaps. */
function describeSource(
  source: RememberedSource | null,
  before: RememberedReplica | null,
  scene: Scene,
): RememberedSource {
  const known = before?.follows ?? null;
  if (source === null) return known ?? { number: null, uuid: null, address: null };
  const same = known !== null && isSameSource(known, source) ? known : null;
  return {
    number: numberOf(source, scene) ?? same?.number ?? null,
    uuid: source.uuid ?? same?.uuid ?? null,
    address: source.address ?? same?.address ?? null,
  };
}

function finish(before: PrimaryMemory | null, after: PrimaryMemory): PrimaryMemory {
  const replicas = after.replicas.toSorted((a, b) => (a.identity < b.identity ? -1 : 1));
  const isReplica = new Set(replicas.map(({ identity }) => identity));
  const former = [...new Set(after.former)].filter((one) => !isReplica.has(one)).sort();
  const learnt = { ...after, replicas, former };
  if (before !== null && isDeepStrictEqual(before, learnt)) return before;
  return { ...learnt, version: (before?.version ?? 0) + 1 };
}
