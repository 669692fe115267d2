// A history of writes while the node of a Galera cluster that is written to is struck and comes back: two gateways before three nodes.
// Ends with what contradicts the promises.

import type { GaleraCluster } from '../clusters/galera.ts';
import { type GaleraNode, waitForSynced } from '../clusters/galera-node.ts';
import { eventually } from '../eventually.ts';
import type { Gateway } from '../gateway.ts';
import {
  type ClusterHistory,
  clusterMostMs,
  clusterRestMs,
  describeStall,
  findRefusal,
  judgeWrites,
  prepareTables,
  startGateways,
  waitForRole,
  watchPeace,
} from './cluster-history.ts';
import { type Crew, makeHistory } from './crew.ts';
import { askAgain, startWriting } from './failover-writing.ts';
import type { Breach } from './judging.ts';

/** The strike against the writer. `quorum`: it continues, and the two others are frozen. */
export const galeraStrikes = ['killed', 'frozen', 'desynced', 'isolated', 'quorum'] as const;
export type GaleraStrike = (typeof galeraStrikes)[number];

/** The promises on Galera beside those of every failover. */
export const galeraPromises = {
  one: 'while no node is struck, all workers of all gateways write to the first of host, and to no other',
  peace: 'while no node is struck, no transaction loses against another node’s',
  refused:
    'without a quorum a write is refused with NO_PRIMARY, and /readyz says that no server can serve',
  same: 'all nodes have the same rows in the end',
  seen: 'while no node is struck, every write has a consistency token, and reads with it show the write, on any node',
} as const;

const tokenRounds = 50;

/** The plan of a history. */
export type GaleraPlan = {
  readonly seed: number;
  readonly how: GaleraStrike;
  readonly clients: number;
};

/** Makes the history on a cluster whose nodes are all up. They are up again at its end. */
export async function makeGaleraHistory(
  cluster: GaleraCluster,
  plan: GaleraPlan,
): Promise<ClusterHistory> {
  const { seed, how } = plan;
  const wish = { name: `a Galera cluster, ${how}`, seed, maxMs: clusterMostMs };
  return makeHistory(wish, async (crew) => {
    await prepareTables(cluster.nodes[0], cluster.target.name);
    return play(
      cluster,
      plan,
      await startGateways(crew, cluster.target, { reads: 'replicas' }),
      crew,
    );
  });
}

async function play(
  cluster: GaleraCluster,
  { how, clients }: GaleraPlan,
  gateways: readonly Gateway[],
  crew: Crew,
): Promise<ClusterHistory> {
  const { nodes } = cluster;
  const [first] = nodes;
  await waitForRole(gateways, first, 'primary');
  const writing = startWriting(gateways, { clients }, crew);
  const direct = async () => {
    const before = [
      ...(await watchPeace(nodes, first, writing, galeraPromises)),
      ...(await watchTokens(first, gateways)),
    ];
    const struckMs = performance.now();
    const refusals = await strike(cluster, how, gateways);
    await waitForSurvivor(cluster, how);
    const promotedMs = performance.now();
    const stalled = await writing.succeed(promotedMs).then(
      () => null,
      () => describeStall(nodes, gateways),
    );
    const returnedMs = await bringBack(cluster, how);
    await waitForRole(gateways, first, 'primary');
    const settledMs = performance.now();
    await writing.succeed(settledMs + clusterRestMs);
    const after = await watchPeace(nodes, first, writing, galeraPromises);
    return {
      failover: { struckMs, promotedMs, settledMs, returnedMs: null, isLossless: true },
      backMs: settledMs - returnedMs,
      stalled,
      breaches: [...before, ...refusals, ...after],
    };
  };
  const { failover, backMs, stalled, breaches } = await direct().finally(() => writing.end());
  const writes = await askAgain(gateways[0] as Gateway, writing.writes, failover.struckMs);
  const found = { nodes, sentToFormer: [], same: galeraPromises.same };
  const judged = await judgeWrites(writes, failover, found);
  return { ...judged, breaches: [...judged.breaches, ...breaches], backMs, stalled };
}

/** Writes a number through one gateway and reads it through the other, from any node. */
async function watchTokens(
  first: GaleraNode,
  [writer, reader]: readonly Gateway[],
): Promise<Breach[]> {
  await first.query('create or replace table counted (n int primary key)');
  await first.query('insert into counted values (0)');
  const wrong: string[] = [];
  for (let n = 1; n <= tokenRounds; n += 1) {
    const written = await writer?.dbPost({ SQL: `update counted set n = ${n}` });
    const token = String(written?.headers['x-consistency-token']);
    const headers = { 'X-Consistency-Token': token };
    const read = await reader?.dbPost(
      { SQL: 'select n from counted', READ_ONLY: true },
      { headers },
    );
    const isReported = [written, read].every(
      (reply) => reply?.headers['x-consistency'] === undefined,
    );
    if (!isReported || !read?.text.includes(`[[${n}]]`)) {
      wrong.push(`${n}: token ${token}, ${JSON.stringify(read?.headers)} ${read?.text}`);
    }
  }
  return wrong.map((example) => ({ promise: galeraPromises.seen, example }));
}

async function strike(
  { nodes }: GaleraCluster,
  how: GaleraStrike,
  gateways: readonly Gateway[],
): Promise<Breach[]> {
  const [first, ...others] = nodes;
  switch (how) {
    case 'killed':
      await first.kill();
      return [];
    case 'frozen':
      first.freeze();
      return [];
    case 'desynced':
      await first.desync(true);
      return [];
    case 'isolated':
      await first.isolate(true);
      return [];
    case 'quorum': {
      for (const other of others) other.freeze();
      await eventually('the writer is alone', async () => !(await first.status()).isPrimary);
      const breaches = await Promise.all(
        gateways.map((gateway) => findRefusal(gateway, galeraPromises.refused)),
      );
      for (const other of others) other.thaw();
      return breaches.flat();
    }
    default:
      throw new Error(`no such strike: ${how satisfies never}`);
  }
}

/** Resolves once another node, or after a loss of quorum the first one, may be written to. */
async function waitForSurvivor({ nodes }: GaleraCluster, how: GaleraStrike): Promise<void> {
  const [first, second] = nodes;
  await waitForSynced((how === 'quorum' ? first : second).status);
  if (how === 'desynced' || how === 'quorum') return;
  await eventually('the others go on', async () => (await second.status()).size === 2);
}

/** The first node is one of three again. Resolves to when that was. */
async function bringBack(cluster: GaleraCluster, how: GaleraStrike): Promise<number> {
  const [first] = cluster.nodes;
  switch (how) {
    case 'killed':
      await first.restart();
      break;
    case 'frozen':
      first.thaw();
      break;
    case 'desynced':
      await first.desync(false);
      break;
    case 'isolated':
      await first.isolate(false);
      break;
    case 'quorum':
      break;
    default:
      throw new Error(`no such strike: ${how satisfies never}`);
  }
  await cluster.waitForAll();
  return performance.now();
}
