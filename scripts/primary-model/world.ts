// The model's world: three servers that replicate, operators and faults, one gateway that probes what it can reach. Pure.

/** The first is the primary at the start. */
export const names = ['A', 'B', 'C'] as const;
const count = names.length;
/** The places of the servers, and the same with the two replicas exchanged, which had the same role at the start. */
export const places: readonly number[] = [0, 1, 2];
export const mirrored: readonly number[] = [0, 2, 1];

/**
 * The transactions that a server holds: a mask for each server that writes. Server i has the bits from i * transactionBits on; bit 0 of
 * these is its first transaction.
 */
export const transactionBits = 6;

/** A server. Worlds share these objects, which never change. */
export type ModelServer = {
  readonly isUp: boolean;
  readonly isReadOnly: boolean;
  /** The gateway cannot reach it. */
  readonly isCut: boolean;
  /** The server that it follows; -1: none. */
  readonly source: number;
  /** The number of its starts. */
  readonly run: number;
  readonly holds: number;
};

/** The number of times that each event may still happen. */
export type Budget = {
  readonly crash: number;
  readonly promote: number;
  readonly errant: number;
  readonly chain: number;
  readonly cut: number;
  readonly restart: number;
  readonly restore: number;
  readonly detach: number;
  /** Transactions that can still be written. */
  readonly write: number;
};

/** Two of most events, so that an operator can go there and back. */
export const usualBudget: Budget = {
  crash: 2,
  promote: 2,
  errant: 1,
  chain: 1,
  cut: 2,
  restart: 1,
  restore: 1,
  detach: 0,
  write: 3,
};

export type World = {
  readonly servers: readonly ModelServer[];
  /** The server that its operator has made the primary. */
  readonly truth: number;
  /** The number of transactions that each server has written. */
  readonly written: readonly number[];
  readonly isGatewayOn: boolean;
  /** The gateway's memory, by its number in the list of memories; 0: nothing. */
  readonly memory: number;
  readonly budget: Budget;
};

export type Step = { readonly name: string; readonly world: World };

/** A has written once, the others follow it and have it. */
export function createWorld(budget: Budget): World {
  const replica = { isUp: true, isReadOnly: true, isCut: false, source: 0, run: 0, holds: 1 };
  return {
    servers: [{ ...replica, isReadOnly: false, source: -1 }, replica, replica],
    truth: 0,
    written: [1, 0, 0],
    isGatewayOn: false,
    memory: 0,
    budget,
  };
}

/** Everything that may happen next. */
export function stepsFrom(world: World): readonly Step[] {
  const steps: Step[] = [];
  const add = (name: string, next: World) => steps.push({ name, world: next });
  addPrimarySteps(world, add);
  for (let at = 0; at < count; at += 1) {
    addServerSteps(world, at, add);
    if (at !== world.truth && serverAt(world, at).isUp) addReplicaSteps(world, at, add);
  }
  addGatewaySteps(world, add);
  return steps;
}

type Add = (name: string, next: World) => void;

function addPrimarySteps(world: World, add: Add): void {
  const { truth, budget } = world;
  const primary = serverAt(world, truth);
  const name = names[truth];
  if (!primary.isUp) return;
  if (!primary.isReadOnly && budget.write > 0) add(`write ${name}`, writeOn(world, truth));
  if (primary.isReadOnly && primary.source < 0) {
    add(`make ${name} writable`, change(world, truth, { isReadOnly: false }));
  }
  const last = lastOwn(world, truth);
  if (last !== 0 && budget.restore > 0) {
    const restored = { holds: primary.holds & ~last, run: primary.run + 1 };
    add(`restore ${name}`, spend(change(world, truth, restored), 'restore'));
  }
}

/** Adds the events that may happen to any server. */
function addServerSteps(world: World, at: number, add: Add): void {
  const { budget } = world;
  const server = serverAt(world, at);
  const name = names[at];
  if (server.isUp && budget.crash > 0) {
    add(`crash ${name}`, spend(change(world, at, { isUp: false }), 'crash'));
  }
  if (!server.isUp) {
    // Replicas are configured to be read-only, the first server is not.
    add(
      `boot ${name}`,
      change(world, at, { isUp: true, isReadOnly: at !== 0, run: server.run + 1 }),
    );
  }
  if (server.isCut) add(`heal ${name}`, change(world, at, { isCut: false }));
  else if (budget.cut > 0) add(`cut ${name}`, spend(change(world, at, { isCut: true }), 'cut'));
}

/** Adds what an operator, or a mistake, may do with a running server that is not the primary. */
function addReplicaSteps(world: World, at: number, add: Add): void {
  const { truth, budget } = world;
  const server = serverAt(world, at);
  const primary = serverAt(world, truth);
  const name = names[at];
  const source = server.source < 0 ? null : serverAt(world, server.source);
  if (source?.isUp && (source.holds & ~server.holds) !== 0) {
    add(`sync ${name}`, change(world, at, { holds: server.holds | source.holds }));
  }
  if (!primary.isUp && budget.promote > 0) {
    add(`promote ${name}`, spend(promoted(world, at), 'promote'));
  }
  if (primary.isUp && server.source !== truth) {
    const follows = { source: truth, isReadOnly: true };
    add(`repoint ${name} to ${names[truth]}`, change(world, at, follows));
  }
  const isReplica = primary.isUp && server.source === truth;
  if (isReplica && server.holds === primary.holds && !primary.isReadOnly && budget.promote > 0) {
    const demoted = change(world, truth, { isReadOnly: true, source: at });
    add(`switch over to ${name}`, spend(promoted(demoted, at), 'promote'));
  }
  if (isReplica && (server.holds & ~primary.holds) !== 0) {
    add(`rebuild ${name}`, change(world, at, { holds: primary.holds }));
  }
  if (source === null) return;
  if (budget.errant > 0 && budget.write > 0) {
    add(`errant row on ${name}`, spend(writeOn(world, at), 'errant'));
  }
  if (budget.detach > 0) {
    const detached = spend(change(world, at, { source: -1 }), 'detach');
    add(`detach ${name}`, detached);
    add(`detach ${name} writable`, change(detached, at, { isReadOnly: false }));
  }
  const middle = names.findIndex((_, other) => other !== at && other !== truth);
  const between = serverAt(world, middle);
  if (isReplica && budget.chain > 0 && between.isUp && between.source === truth) {
    const chained = change(world, at, { source: middle });
    add(`chain ${name} to ${names[middle]}`, spend(chained, 'chain'));
  }
}

function addGatewaySteps(world: World, add: Add): void {
  const { budget, isGatewayOn, memory } = world;
  if (isGatewayOn) {
    if (budget.restart > 0) add('stop', spend({ ...world, isGatewayOn: false }, 'restart'));
    return;
  }
  add('start', { ...world, isGatewayOn: true });
  if (memory !== 0) add('start on a new host', { ...world, isGatewayOn: true, memory: 0 });
}

export function serverAt({ servers }: World, at: number): ModelServer {
  return servers[at] as ModelServer;
}

function change(world: World, at: number, changes: Partial<ModelServer>): World {
  const servers = world.servers.slice();
  servers[at] = { ...serverAt(world, at), ...changes };
  return { ...world, servers };
}

function spend(world: World, what: keyof Budget): World {
  return { ...world, budget: { ...world.budget, [what]: world.budget[what] - 1 } };
}

function promoted(world: World, at: number): World {
  return { ...change(world, at, { source: -1, isReadOnly: false }), truth: at };
}

function writeOn(world: World, at: number): World {
  const number = world.written[at] as number;
  const written = world.written.slice();
  written[at] = number + 1;
  const holds = serverAt(world, at).holds | (1 << (at * transactionBits + number));
  return spend({ ...change(world, at, { holds }), written }, 'write');
}

/** The last own transaction that a server holds; 0: none. */
function lastOwn(world: World, at: number): number {
  const { holds } = serverAt(world, at);
  for (let number = transactionBits - 1; number >= 0; number -= 1) {
    const bit = 1 << (at * transactionBits + number);
    if ((holds & bit) !== 0) return bit;
  }
  return 0;
}

/** The transactions of each server that a server holds, in this order. */
export function heldIn(holds: number, order: readonly number[]): readonly number[] {
  const ofOne = (1 << transactionBits) - 1;
  return order.map((place) => (holds >> (place * transactionBits)) & ofOne);
}

/**
 * Tells whether everything is as an operator would have it: the primary takes writes, all running servers follow it, and the gateway
 * reaches them.
 */
export function isSane({ servers, truth }: World): boolean {
  return servers.every((server, at) => {
    if (server.isCut) return false;
    if (at === truth) return server.isUp && !server.isReadOnly && server.source < 0;
    if (!server.isUp || server.source === truth) return true;
    const middle = servers[server.source];
    return middle?.isUp === true && middle.source === truth;
  });
}
