// A history of writes while a member of a MySQL group is struck and comes back: two gateways before three members.
// Ends with what contradicts the promises.
import { setTimeout as pause } from 'node:timers/promises';
import type { Group } from '../clusters/group.ts';
import { type GroupMember, waitForMembers } from '../clusters/group-member.ts';
import { whoAmI } from '../clusters/several-servers.ts';
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
  watchWrites,
} from './cluster-history.ts';
import { type Crew, makeHistory } from './crew.ts';
import { askAgain, startWriting, type Writing } from './failover-writing.ts';
import type { Breach } from './judging.ts';
import { describe, isSuccess } from './reported.ts';

/**
 * The strikes. The primary: `killed`, `frozen`, `switched` (another one is made the primary), `quorum` (it stays, and the two others are
 * killed). Another one: `stopped` (it leaves the group), `recovering` (and joins, and cannot catch up). With several primaries, the first
 * of host: `several-killed`, `several-frozen`.
 */
export const groupStrikes = [
  'killed',
  'frozen',
  'switched',
  'quorum',
  'stopped',
  'recovering',
  'several-killed',
  'several-frozen',
] as const;
export type GroupStrike = (typeof groupStrikes)[number];

/** The promises on Group Replication beside those of every failover. */
export const groupPromises = {
  one: 'while nothing happens, all workers of all gateways write to the primary (of several, the first of host), and to no other',
  peace: 'while nothing happens, no transaction loses against another member’s',
  refused:
    'without a majority a write is refused with NO_PRIMARY, /readyz says that no server can serve, and the log has the reason',
  out: 'a member that has left its group, or recovers, is not read from',
  undisturbed: 'no event at another member than the primary fails a write',
  same: 'all members have the same rows in the end',
} as const;

/** The plan of a history. */
export type GroupPlan = {
  readonly seed: number;
  readonly how: GroupStrike;
  readonly clients: number;
};

/** A strike that is over. */
type Struck = {
  /** When a member could be written to again. */
  readonly promotedMs: number;
  /** The server that gets writes once all are back. */
  readonly writer: GroupMember;
  readonly breaches: readonly Breach[];
  /** Resolves once those that were struck are members again. */
  readonly bringBack: () => Promise<void>;
};

/** Makes the history on a group whose members are all up. They are up again at its end. */
export async function makeGroupHistory(group: Group, plan: GroupPlan): Promise<ClusterHistory> {
  const hasSeveral = plan.how.startsWith('several-');
  await group.setMode(hasSeveral ? 'multi-primary' : 'single-primary');
  const writer = hasSeveral ? group.members[0] : await findWritable(group.members);
  const wish = { name: `a MySQL group, ${plan.how}`, seed: plan.seed, maxMs: clusterMostMs };
  return makeHistory(wish, async (crew) => {
    await prepareTables(writer, group.target.name);
    const gateways = await startGateways(crew, group.target, { reads: 'replicas' });
    return play(group, plan, { gateways, writer }, crew);
  });
}

type Stage = { readonly gateways: readonly Gateway[]; readonly writer: GroupMember };

async function play(
  group: Group,
  plan: GroupPlan,
  stage: Stage,
  crew: Crew,
): Promise<ClusterHistory> {
  const { members } = group;
  const { gateways, writer: former } = stage;
  await settle(stage, members);
  const writing = startWriting(gateways, plan, crew);
  const direct = async () => {
    const before = await watchPeace(members, former, writing, groupPromises);
    const struckMs = performance.now();
    const struck = await strike(group, plan.how, { ...stage, writing });
    const { promotedMs, writer } = struck;
    const stalled = await writing.succeed(promotedMs).then(
      () => null,
      () => describeStall(members, gateways),
    );
    const returnedMs = performance.now();
    const sent = watchWrites(writer === former ? [] : [former]);
    await struck.bringBack();
    await group.waitForAll();
    await settle({ gateways, writer }, members);
    const settledMs = performance.now();
    await writing.succeed(settledMs + clusterRestMs);
    const after = await watchPeace(members, writer, writing, groupPromises);
    const changes = stopsTwice(plan.how) ? { settledMs } : {};
    return {
      failover: { struckMs, promotedMs, ...changes, returnedMs: null, isLossless: true },
      backMs: settledMs - returnedMs,
      stalled,
      sentToFormer: sent(),
      breaches: [...before, ...struck.breaches, ...after],
    };
  };
  const run = await direct().finally(() => writing.end());
  const writes = await askAgain(gateways[0] as Gateway, writing.writes, run.failover.struckMs);
  const judged = await judgeWrites(writes, run.failover, {
    nodes: members,
    sentToFormer: run.sentToFormer,
    same: groupPromises.same,
  });
  const { backMs, stalled } = run;
  return { ...judged, breaches: [...judged.breaches, ...run.breaches], backMs, stalled };
}

/** With several primaries, the first of `host` is written to again. A group of one agrees on nothing while the second member joins. */
function stopsTwice(how: GroupStrike): boolean {
  return how === 'quorum' || how.startsWith('several-');
}

/** Resolves once all workers of all gateways know the writer, and read from the others. */
async function settle({ gateways, writer }: Stage, members: readonly GroupMember[]): Promise<void> {
  for (const member of members) {
    await waitForRole(gateways, member, member === writer ? 'primary' : 'replica');
  }
}

async function strike(
  group: Group,
  how: GroupStrike,
  { gateways, writer, writing }: Stage & { readonly writing: Writing },
): Promise<Struck> {
  const others = group.members.filter((member) => member !== writer);
  const [other] = others as [GroupMember, GroupMember];
  switch (how) {
    case 'killed':
    case 'several-killed': {
      await writer.kill();
      const bringBack = () => restart(group, writer);
      return { ...(await waitForHeir(how, writer, others)), breaches: [], bringBack };
    }
    case 'frozen':
    case 'several-frozen': {
      writer.freeze();
      const bringBack = () => thaw(group, writer);
      return { ...(await waitForHeir(how, writer, others)), breaches: [], bringBack };
    }
    case 'switched': {
      const promotedMs = await other.promote();
      return { promotedMs, writer: other, breaches: [], bringBack: async () => undefined };
    }
    case 'quorum':
      return loseMajority(group, writer, gateways);
    case 'stopped':
    case 'recovering':
      return leaveOut(other, { gateways, writer, writing }, how);
    default:
      throw new Error(`no such strike: ${how satisfies never}`);
  }
}

/**
 * Waits for the next writer after the writer is gone and the group has settled on it. Of several primaries, the first gets the writes when
 * it is back.
 */
async function waitForHeir(
  how: GroupStrike,
  former: GroupMember,
  others: readonly GroupMember[],
): Promise<Pick<Struck, 'promotedMs' | 'writer'>> {
  const [first] = others as [GroupMember];
  await waitForMembers(first, others.length);
  const heir = await findWritable(others);
  return { promotedMs: performance.now(), writer: how.startsWith('several-') ? former : heir };
}

async function findWritable(members: readonly GroupMember[]): Promise<GroupMember> {
  return eventually('a member may be written to', async () => {
    const all = await Promise.all(members.map((member) => member.status()));
    return members.find((_member, at) => all[at]?.isWritable);
  });
}

/**
 * Gateways probe a server that was gone three times, once a second, before it counts. During this time it is there, writable, outside its
 * group.
 */
const outsideMs = 4_000;

async function restart(group: Group, member: GroupMember): Promise<void> {
  await member.restart();
  await pause(outsideMs);
  await group.rejoin(member);
}

/** It finds that it was given up. */
async function thaw(group: Group, member: GroupMember): Promise<void> {
  member.thaw();
  await eventually(`${member.name} knows`, async () => (await member.status()).state === 'ERROR');
  // It is closing its clients' connections, including ours.
  await eventually(`${member.name} leaves`, () => member.leave().then(() => true));
  await group.rejoin(member);
}

/** The two others are killed; the primary goes on alone on command. */
async function loseMajority(
  group: Group,
  writer: GroupMember,
  gateways: readonly Gateway[],
): Promise<Struck> {
  const others = group.members.filter((member) => member !== writer);
  for (const other of others) await other.kill();
  await eventually('the primary is alone', async () => (await writer.status()).online === 1);
  const { refused } = groupPromises;
  const reason = 'the member has lost the majority of its group';
  const breaches = await Promise.all(gateways.map((one) => findRefusal(one, refused, reason)));
  await writer.force();
  await waitForMembers(writer, 1);
  const promotedMs = performance.now();
  const bringBack = async () => {
    for (const other of others) await restart(group, other);
  };
  return { promotedMs, writer, breaches: breaches.flat(), bringBack };
}

/** Writes and reads go on without a member that is not the primary. */
async function leaveOut(
  member: GroupMember,
  { gateways, writer, writing }: Stage & { readonly writing: Writing },
  how: 'stopped' | 'recovering',
): Promise<Struck> {
  const fromMs = performance.now();
  await member.leave();
  if (how === 'recovering') {
    await member.join(false);
    await eventually('it recovers', async () => (await member.status()).state === 'RECOVERING');
  }
  await waitForRole(gateways, member, 'unusable');
  const read = (await Promise.all(gateways.map((gateway) => findReads(gateway, member)))).flat();
  const promotedMs = performance.now();
  await writing.succeed(promotedMs);
  const failed = writing.writes
    .flatMap(({ reported }) => reported)
    .filter((reported) => reported.toMs >= fromMs && !isSuccess(reported))
    .map((reported) => ({ promise: groupPromises.undisturbed, example: describe(reported) }));
  const bringBack = async () => {
    if (how === 'recovering') await member.leave();
    await member.join();
  };
  return { promotedMs, writer, breaches: [...read, ...failed], bringBack };
}

/** Over several looks of the gateway's. */
const readingMs = 3_000;

/** Finds reads that this member answers although it must be left out. */
async function findReads(gateway: Gateway, { name, serverId }: GroupMember): Promise<Breach[]> {
  const endMs = performance.now() + readingMs;
  const breaches: Breach[] = [];
  while (performance.now() < endMs) {
    const { status, text, json } = await gateway.post('/v1/query', {
      sql: whoAmI,
      read_only: true,
    });
    const isGood =
      status === 200 && Number(json<{ rows: unknown[][] }>().rows[0]?.[0]) !== serverId;
    if (!isGood) {
      breaches.push({ promise: groupPromises.out, example: `${name} is out: ${status} ${text}` });
    }
  }
  return breaches;
}
