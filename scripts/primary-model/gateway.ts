// The model's gateway: its view of a world, and what the product's rules decide from that view and its memory.

import { judge } from '../../src/shared/servers/judge.ts';
import type { Position } from '../../src/shared/servers/position.ts';
import type { PrimaryMemory } from '../../src/shared/servers/primary-memory.ts';
import type { CandidateState } from '../../src/shared/servers/scene.ts';
import type { Source } from '../../src/shared/servers/server-view.ts';
import {
  heldIn,
  type ModelServer,
  names,
  places,
  serverAt,
  transactionBits,
  type World,
} from './world.ts';

/** The decision after all servers were probed at once. */
export type Decision = {
  /** The server that takes writes; -1: none. */
  readonly primary: number;
  /** The reason why no server takes writes. */
  readonly reason: string;
  /** The memory after it. */
  readonly memory: number;
};

const uuids = names.map((name) => `${name.toLowerCase().repeat(8)}-1111-1111-1111-111111111111`);
/** Far more than the tolerance for a server's start. */
const runSeconds = 100;

/** Decides as a worker that has just probed all servers at once. It caches decisions, because worlds repeat what is seen. */
export class ModelGateway {
  /** Memories by their numbers; 0 is none. */
  readonly #memories: (PrimaryMemory | null)[] = [null];
  readonly #numbers = new Map<string, number>();
  readonly #mirrors: (number | undefined)[] = [0];
  readonly #decisions = new Map<string, Decision>();

  decide(world: World): Decision {
    const key = this.sight(world, places);
    const known = this.#decisions.get(key);
    if (known !== undefined) return known;
    const memory = this.#memories[world.memory] ?? null;
    const seen = world.servers.map((server, at) => see(server, at, world));
    const found = judge(seen, { memory, reference: null, isInUse: false });
    const decision = {
      primary: found.primary ?? -1,
      reason: found.none?.reason ?? '',
      memory: this.#keep(found.memory),
    };
    this.#decisions.set(key, decision);
    return decision;
  }

  /**
   * The view and the memory as text: the gateway decides alike wherever this text is the same.
   * @param order which server is named first, second and third: B and C may change places
   */
  sight(world: World, order: readonly number[]): string {
    const isMirrored = order !== places;
    const seen = order.map((place) => sightOf(world, place, order));
    return `${seen.join(';')}|${isMirrored ? this.mirror(world.memory) : world.memory}`;
  }

  /** The number of the memory in which the two replicas have changed places. */
  mirror(number: number): number {
    const known = this.#mirrors[number];
    if (known !== undefined) return known;
    const text = JSON.stringify(this.#memories[number]);
    const swapped = JSON.parse(swapReplicas(text)) as PrimaryMemory;
    const order = (one: { readonly identity: string }, other: { readonly identity: string }) =>
      one.identity < other.identity ? -1 : 1;
    const mirrored = this.#keep({
      ...swapped,
      replicas: swapped.replicas.toSorted(order),
      former: swapped.former.toSorted(),
    });
    this.#mirrors[number] = mirrored;
    this.#mirrors[mirrored] = number;
    return mirrored;
  }

  describe(number: number): string {
    const memory = this.#memories[number] ?? null;
    if (memory === null) return 'remembers nothing';
    const { primary, replicas, former, term } = memory;
    const nameOf = (identity: string) => identity.charAt(0).toUpperCase();
    const followers = replicas.map(({ identity, follows, term: seen }) => {
      return `${nameOf(identity)} of ${nameOf(follows.uuid ?? '?')}${seen === term ? '' : ' before'}`;
    });
    return `remembers ${nameOf(primary.identity)}, ${followers.join(', ')}; former ${former.map(nameOf).join()}`;
  }

  /** Versions count changes, and no rule reads them: memories that differ only in the version are the same. */
  #keep(memory: PrimaryMemory | null): number {
    if (memory === null) return 0;
    const kept = { ...memory, version: 1 };
    const text = JSON.stringify(kept);
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.#memories.length);
    this.#memories.push(Object.freeze(kept));
    return this.#memories.length - 1;
  }
}

/** B and C had the same role at the start. */
function swapReplicas(text: string): string {
  const marked = text.replace(/bbbbbbbb|"B:1"|"2"/g, (found) => `<${found}>`);
  return marked
    .replace(/cccccccc/g, 'bbbbbbbb')
    .replace(/"C:1"/g, '"B:1"')
    .replace(/"3"/g, '"2"')
    .replace(/<bbbbbbbb>/g, 'cccccccc')
    .replace(/<"B:1">/g, '"C:1"')
    .replace(/<"2">/g, '"3"');
}

function isSeen({ isUp, isCut }: ModelServer): boolean {
  return isUp && !isCut;
}

function sightOf(world: World, place: number, order: readonly number[]): string {
  const server = serverAt(world, place);
  if (!isSeen(server)) return '-';
  const { source, isReadOnly, run, holds } = server;
  const link =
    source < 0 ? '' : `${order.indexOf(source)}${serverAt(world, source).isUp ? '+' : ''}`;
  return `${isReadOnly ? 'r' : 'w'}${link}.${run}.${heldIn(holds, order).join()}`;
}

function see(server: ModelServer, at: number, world: World): CandidateState {
  const number = String(at + 1);
  if (!isSeen(server)) return { view: null, reason: 'away', number };
  const { source, isReadOnly, run, holds } = server;
  const view = {
    identity: { name: number, startedAt: run * runSeconds },
    number,
    uuid: uuids[at] as string,
    version: 'MySQL 9',
    isReadOnly,
    following:
      source < 0
        ? ({ kind: 'none' } as const)
        : ({ kind: 'listed', sources: [sourceAt(source, world)] } as const),
    position: positionOf(holds),
    galera: null,
    group: null,
    askedAt: 0,
  };
  // Probes are more frequent than events.
  return { view, earlier: [view], address: `${names[at]}:1`, provenBy: null, notYet: null };
}

function sourceAt(source: number, world: World): Source {
  const isConnected = world.servers[source]?.isUp === true;
  return {
    number: String(source + 1),
    uuid: uuids[source] as string,
    address: `${names[source]}:1`,
    isConnected,
  };
}

function positionOf(holds: number): Position {
  const sets = new Map<string, (readonly [bigint, bigint])[]>();
  for (const [at, uuid] of uuids.entries()) {
    const own: (readonly [bigint, bigint])[] = [];
    for (let number = 0; number < transactionBits; number += 1) {
      if ((holds & (1 << (at * transactionBits + number))) === 0) continue;
      const last = own.at(-1);
      const next = BigInt(number + 1);
      if (last !== undefined && last[1] + 1n === next) own[own.length - 1] = [last[0], next];
      else own.push([next, next]);
    }
    if (own.length > 0) sets.set(uuid, own);
  }
  return { kind: 'mysql', sets };
}
