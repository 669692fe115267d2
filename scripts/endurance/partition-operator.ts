// The operator of three servers and a gateway: kills, promotes, brings back, switches over, restarts; and the network between, which cuts links.
import { setTimeout as pause } from 'node:timers/promises';
import type { ReplicationServer } from '../../test/support/clusters/replication-server.ts';
import { eventually } from '../../test/support/eventually.ts';
import { signal } from '../../test/support/processes.ts';
import { pick } from '../../test/support/random.ts';
import type { PartitionWorld } from './partition-world.ts';

/** The strikes of the operator, one in each round. */
const partitionStrikes = [
  'fail over',
  'switch over',
  'restart the primary',
  'restart a replica',
  'restart the gateway',
  'cut links',
] as const;
type PartitionStrike = (typeof partitionStrikes)[number];

/** Five of each worker: enough for it to use a server that had been gone. */
const enoughLooks = 10;
const betweenKillsMs = [1_500, 5_000] as const;
const cutMs = [500, 5_000] as const;
const betweenCutsMs = [200, 2_000] as const;

/** Before this share of the kills, the replicas receive nothing for a while, so the primary has rows whose clients get no reply. */
const unheardShare = 0.4;
const unheardMs = 300;
const failOverShare = 0.3;

const between = (random: () => number, [least, most]: readonly [number, number]) =>
  Math.round(least + random() * (most - least));

/** Draws a strike. A failover has the most parts, and happens more often than others. */
export function drawStrike(random: () => number): PartitionStrike {
  return random() < failOverShare ? 'fail over' : pick(random, partitionStrikes);
}

/** Makes one strike. Resolves when every server is in its place again. Calls `note` with each step. */
export async function strike(
  world: PartitionWorld,
  how: PartitionStrike,
  random: () => number,
  note: (step: string) => void,
): Promise<void> {
  switch (how) {
    case 'fail over':
      return failOver(world, random, note);
    case 'switch over':
      return switchOver(world, random, note);
    case 'restart the primary':
      return restartPrimary(world, random, note);
    case 'restart a replica':
      return restartReplica(world, random, note);
    case 'restart the gateway':
      return restartGateway(world, random, note);
    case 'cut links':
      note('links are cut');
      return pause(between(random, [2_000, 8_000]));
    default:
      throw new Error(`no such strike: ${how satisfies never}`);
  }
}

async function failOver(
  world: PartitionWorld,
  random: () => number,
  note: (step: string) => void,
): Promise<void> {
  const former = world.set.primary();
  if (random() < unheardShare) {
    note(`no replica hears ${former.name}`);
    for (const replica of world.set.replicas()) await replica.query('stop slave io_thread');
    await pause(unheardMs);
  }
  note(`kills ${former.name}`);
  await former.kill();
  world.endReign();
  await pause(between(random, [0, 2_000]));
  const next = await findMostAdvanced(world);
  note(`promotes ${next.name}`);
  world.beginReign(next);
  await world.set.promote(next);
  // Probes during the promotion, which takes seconds on a loaded machine, may have seen nothing of it.
  const before = world.set.servers.map(({ link }) => link.statements.length);
  // A gateway that sees neither the new primary nor its replica cannot know of the promotion: docs/operate/several-servers.md.
  note('waits until the gateway has seen the promotion');
  await eventually('the gateway sees the promotion', () =>
    world.set.servers.some(
      (server, at) => server !== former && world.looksSince(server, before[at] ?? 0) >= enoughLooks,
    ),
  );
  note(`brings ${former.name} back, writable`);
  await former.restart();
  await former.setReadOnly(false);
  await pause(between(random, [500, 3_000]));
  if (random() < 0.4) await restartGateway(world, random, note);
  await pause(between(random, [500, 3_000]));
  note(`has ${former.name} follow`);
  note(`${former.name} is ${await world.rejoin(former)}`);
}

/** The replica that has received most, once both have read all that the primary had sent. */
async function findMostAdvanced(world: PartitionWorld): Promise<ReplicationServer> {
  const primary = world.set.primary();
  const replicas = world.set.servers.filter((server) => server !== primary);
  const read = (server: ReplicationServer) =>
    eventually('the replica has read all that was sent', async () => {
      const [status] = await server.query('show slave status');
      if (status?.Slave_IO_Running === 'Yes') return null;
      return { server, received: Number(String(status?.Gtid_IO_Pos).split('-')[2]) };
    });
  const all = await Promise.all(replicas.map(read));
  const [best] = all.sort((one, other) => other.received - one.received);
  if (best === undefined) throw new Error('there is no replica');
  return best.server;
}

async function switchOver(
  world: PartitionWorld,
  random: () => number,
  note: (step: string) => void,
): Promise<void> {
  const { set } = world;
  const former = set.primary();
  const next = pick(random, set.replicas());
  note(`switches from ${former.name} to ${next.name}`);
  await former.setReadOnly(true);
  world.endReign();
  await set.waitForCatchUp();
  await former.query('set global rpl_semi_sync_master_enabled = 0');
  await pause(between(random, [0, 1_000]));
  world.beginReign(next);
  await set.promote(next);
  await pause(between(random, [0, 1_000]));
  note(`has ${former.name} follow`);
  await set.follow(former);
}

async function restartPrimary(
  world: PartitionWorld,
  random: () => number,
  note: (step: string) => void,
): Promise<void> {
  const primary = world.set.primary();
  note(`restarts ${primary.name}`);
  await primary.kill();
  await pause(between(random, [0, 2_000]));
  await primary.restart();
  await primary.query('set global rpl_semi_sync_master_enabled = 1; set global read_only = 0');
}

async function restartReplica(
  world: PartitionWorld,
  random: () => number,
  note: (step: string) => void,
): Promise<void> {
  const replica = pick(random, world.set.replicas());
  note(`restarts ${replica.name}`);
  await replica.kill();
  await pause(between(random, [0, 3_000]));
  await replica.restart();
  await replica.setReadOnly(true);
}

async function restartGateway(
  world: PartitionWorld,
  random: () => number,
  note: (step: string) => void,
): Promise<void> {
  const how = random() < 0.5 ? 'SIGTERM' : 'SIGKILL';
  note(`restarts the gateway: ${how}`);
  await world.endGateway(how);
  await world.startGateway();
}

/** Cuts one or two links at a time, and heals them, until `isOver`. Resolves with all links healed. */
export async function cutLinks(
  world: PartitionWorld,
  random: () => number,
  isOver: () => boolean,
): Promise<number> {
  let cuts = 0;
  while (!isOver()) {
    await pauseUnless(isOver, between(random, betweenCutsMs));
    const spared = pick(random, world.set.servers);
    const others = world.set.servers.filter((server) => server !== spared);
    const cut = random() < 0.5 ? others : [pick(random, others)];
    const heals = cut.map((server) => cutOne(server, random() < 0.5));
    cuts += cut.length;
    await pauseUnless(isOver, between(random, cutMs));
    for (const heal of heals) heal();
  }
  return cuts;
}

/** A cut link is silent, or resets each connection. */
function cutOne({ link }: ReplicationServer, isSilent: boolean): () => void {
  if (isSilent) {
    link.partition();
    return () => link.heal();
  }
  link.refuse(true);
  link.cutAll();
  return () => link.refuse(false);
}

/** Kills a worker now and then, until `isOver`. The next worker knows only what the gateway remembers. */
export async function killWorkers(
  world: PartitionWorld,
  random: () => number,
  isOver: () => boolean,
): Promise<number> {
  let kills = 0;
  while (!isOver()) {
    await pauseUnless(isOver, between(random, betweenKillsMs));
    if (isOver()) break;
    const victim = findWorker(world, random);
    if (victim !== null && signal(victim, 'SIGKILL')) kills += 1;
  }
  return kills;
}

/** No worker while the gateway restarts. */
function findWorker(world: PartitionWorld, random: () => number): number | null {
  try {
    return pick(random, world.workers());
  } catch {
    return null;
  }
}

const stepMs = 100;

async function pauseUnless(isOver: () => boolean, ms: number): Promise<void> {
  const untilMs = performance.now() + ms;
  while (!isOver() && performance.now() < untilMs) await pause(stepMs);
}
