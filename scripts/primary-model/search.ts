// Explores every world that a number of steps leads to, and compares each decision of the gateway with the truth.
import { type Decision, ModelGateway } from './gateway.ts';
import {
  type Budget,
  createWorld,
  heldIn,
  isSane,
  mirrored,
  places,
  serverAt,
  stepsFrom,
  type World,
} from './world.ts';

/** A sight: what the gateway sees and remembers. Different worlds may look the same. */
type Sight = {
  /** The server that it writes to; -1: none. */
  readonly primary: number;
  readonly reason: string;
  readonly hasMemory: boolean;
  /** A bit for each server that is the true primary in some world that looks like this. */
  truths: number;
  /** The first way to a world in which the gateway writes to another server than the true primary; null: none. */
  unsafe: readonly string[] | null;
  /** The first way to a world in which the gateway sees the true primary writable, and writes to no server. */
  refusing: readonly string[] | null;
  /** The same, if in addition all servers are as an operator would have them. */
  sane: readonly string[] | null;
};

export type Found = {
  readonly states: number;
  readonly sights: number;
  /**
   * Ways to sights in which it writes to a server that is the true primary in none of the worlds that look like this: of a gateway that
   * remembers something, and of one that remembers nothing.
   */
  readonly avoidable: readonly (readonly string[])[];
  readonly withoutMemory: readonly (readonly string[])[];
  /** The same for a sight that is right in another world: no rule can distinguish the two. */
  readonly unknowable: readonly (readonly string[])[];
  readonly refusing: readonly (readonly string[])[];
  readonly saneRefusing: readonly (readonly string[])[];
  readonly reasons: Readonly<Record<string, number>>;
};

/** A world, and the steps that led there. */
type Node = { readonly world: World; readonly path: readonly string[] };

/** @param onDepth called after each depth, with the number of different worlds up to there */
export function explore(
  budget: Budget,
  depth: number,
  onDepth: (depth: number, states: number) => void = () => {},
): Found {
  const gateway = new ModelGateway();
  const sights = new Map<string, Sight>();
  const seen = new Hashes();
  const visit = (world: World, path: readonly string[]): Node | null => {
    const decision = world.isGatewayOn ? gateway.decide(world) : null;
    if (decision !== null) note(sights, gateway, decision, world, path);
    const decided = decision === null ? world : { ...world, memory: decision.memory };
    if (!seen.add(canonical(gateway, decided))) return null;
    // Everything that follows a wrong write is wrong as well.
    const primary = decision?.primary ?? -1;
    return primary >= 0 && primary !== world.truth ? null : { world: decided, path };
  };
  const cold = createWorld(budget);
  let front = [cold, { ...cold, isGatewayOn: true }].flatMap((world) => visit(world, []) ?? []);
  for (let step = 1; step <= depth; step += 1) {
    const next: Node[] = [];
    for (const { world, path } of front) {
      for (const { name, world: then } of stepsFrom(world)) {
        const node = visit(then, [...path, name]);
        if (node !== null && step < depth) next.push(node);
      }
    }
    front = next;
    onDepth(step, seen.size);
  }
  return summarize(sights, seen.size);
}

function note(
  sights: Map<string, Sight>,
  gateway: ModelGateway,
  { primary, reason }: Decision,
  world: World,
  path: readonly string[],
): void {
  const { own, other, isMirrored } = bothWays((order) => gateway.sight(world, order));
  const order = isMirrored ? mirrored : places;
  const key = isMirrored ? other : own;
  const named = primary < 0 ? primary : order.indexOf(primary);
  const hasMemory = world.memory !== 0;
  const found = { truths: 0, unsafe: null, refusing: null, sane: null };
  const blank: Sight = { primary: named, reason, hasMemory, ...found };
  const sight = sights.get(key) ?? blank;
  sights.set(key, sight);
  const { truth } = world;
  sight.truths |= 1 << order.indexOf(truth);
  if (primary >= 0) {
    if (primary !== truth) sight.unsafe ??= path;
    return;
  }
  const { isUp, isCut, isReadOnly, source } = serverAt(world, truth);
  if (!isUp || isCut || isReadOnly || source >= 0) return;
  sight.refusing ??= path;
  if (isSane(world)) sight.sane ??= path;
}

function summarize(sights: ReadonlyMap<string, Sight>, states: number): Found {
  const all = [...sights.values()];
  const waysOf = (choose: (sight: Sight) => readonly string[] | null) =>
    all.flatMap((sight) => {
      const path = choose(sight);
      return path === null ? [] : [path];
    });
  const isRightElsewhere = ({ primary, truths }: Sight) => (truths & (1 << primary)) !== 0;
  const reasons: Record<string, number> = {};
  for (const { reason, refusing } of all) {
    if (refusing !== null) reasons[reason] = (reasons[reason] ?? 0) + 1;
  }
  return {
    states,
    sights: sights.size,
    avoidable: waysOf((sight) =>
      isRightElsewhere(sight) || !sight.hasMemory ? null : sight.unsafe,
    ),
    withoutMemory: waysOf((sight) =>
      isRightElsewhere(sight) || sight.hasMemory ? null : sight.unsafe,
    ),
    unknowable: waysOf((sight) => (isRightElsewhere(sight) ? sight.unsafe : null)),
    refusing: waysOf((sight) => sight.refusing),
    saneRefusing: waysOf((sight) => sight.sane),
    reasons,
  };
}

/** A world, and the same world with B and C exchanged, are explored once. */
function canonical(gateway: ModelGateway, world: World): string {
  const { own, other, isMirrored } = bothWays((order) =>
    textOf(world, order, order === mirrored ? gateway.mirror(world.memory) : world.memory),
  );
  return isMirrored ? other : own;
}

function bothWays(describe: (order: readonly number[]) => string) {
  const [own, other] = [describe(places), describe(mirrored)];
  return { own, other, isMirrored: other < own };
}

/** @param order which server comes first, second and third */
function textOf(world: World, order: readonly number[], memory: number): string {
  const { truth, written, isGatewayOn, budget } = world;
  const servers = order.map((place) => {
    const { isUp, isReadOnly, isCut, source, run, holds } = serverAt(world, place);
    const flags = (isUp ? 1 : 0) | (isReadOnly ? 2 : 0) | (isCut ? 4 : 0);
    const held = heldIn(holds, order).join();
    return `${flags}${order.indexOf(source)}${run},${held},${written[place]}`;
  });
  const left = Object.values(budget).join('');
  return `${servers.join(';')};${order.indexOf(truth)}${isGatewayOn ? '+' : ''}${memory};${left}`;
}

/**
 * A set of texts that keeps 53 bits of each, so that a hundred million fit into memory. A collision (one in ten thousand runs of ten million
 * worlds) only hides a world.
 */
class Hashes {
  size = 0;
  #slots = new Float64Array(1 << 20);

  /** Adds a text. Returns whether it is new. */
  add(text: string): boolean {
    if (this.size * 2 > this.#slots.length) this.#grow();
    return this.#put(hash(text));
  }

  #put(value: number): boolean {
    const mask = this.#slots.length - 1;
    let at = (value % this.#slots.length) & mask;
    for (;;) {
      const there = this.#slots[at];
      if (there === value) return false;
      if (there === 0) break;
      at = (at + 1) & mask;
    }
    this.#slots[at] = value;
    this.size += 1;
    return true;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new Float64Array(before.length * 2);
    this.size = 0;
    for (const value of before) if (value !== 0) this.#put(value);
  }
}

/** Two times FNV-1a, with different starts. */
function hash(text: string): number {
  let [high, low] = [0x811c9dc5, 0x01000193];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    high = Math.imul(high ^ code, 0x01000193);
    low = Math.imul(low ^ code, 0x85ebca6b);
    low ^= low >>> 13;
  }
  return (high >>> 0) * 0x20_0000 + (low >>> 11) + 1;
}
