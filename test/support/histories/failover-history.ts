// A history of writes during one failover: a gateway before a replicated set, clients that write all the time, a primary that is struck, a replica
// that is promoted, the former primary back. Ends with what contradicts the promises.
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { type ReplicatedSet, startReplication } from '../clusters/replication.ts';
import type { ReplicationServer } from '../clusters/replication-server.ts';
import { reasonsOf } from '../clusters/several-servers.ts';
import { type FaultProxy, startFaultProxy } from '../database/fault-proxy.ts';
import { eventually } from '../eventually.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import type { Settings } from '../ini-text.ts';
import { type Crew, makeHistory } from './crew.ts';
import { type FailoverFound, type FailoverJudgement, judgeFailover } from './failover-judge.ts';
import { bringBack, failOver, type Strike } from './failover-strikes.ts';
import { idOf, writtenTable } from './failover-writes.ts';
import {
  askAgain,
  countAll,
  countRows,
  isWrite,
  startWriting,
  type Writing,
  type WritingPlan,
} from './failover-writing.ts';
import { fetchKeptReplies, waitUntilIdle } from './server-look.ts';

/** The plan of a failover. */
export type FailoverPlan = Pick<WritingPlan, 'clients' | 'restMs' | 'enoughWrites'> & {
  readonly seed: number;
  readonly how: Strike;
  /** 0: a primary alone, which can only be `restarted`. */
  readonly replicas: number;
  /** From the strike to the promotion. */
  readonly afterMs: number;
  /** Writes wait for a replica: none that was reported may be lost. */
  readonly semiSync: boolean;
  /** Replicas get nothing of the last writes before the strike, which are lost, although they were reported. */
  readonly losing: boolean;
  /** The gateway knows one address alone, which a balancer moves to the new primary. Otherwise it finds the new primary itself. */
  readonly floating: boolean;
  /** A write must succeed within this time of the promotion; the promised 2 s unless given. */
  readonly serviceMs?: number;
  /** Further keys of the gateway's section. */
  readonly settings?: Settings;
};

/** The events of a failover. */
export type FailoverHistory = FailoverJudgement & {
  /** The number of writes, and of requests by the way in which they ended. */
  readonly counts: ReadonlyMap<string, number>;
};

/** Far more than a failover and a return take. */
const maxMs = 200_000;

/** Starts what is needed, makes the history, ends all that was started. */
export function makeFailoverHistory(plan: FailoverPlan): Promise<FailoverHistory> {
  return makeHistory(nameOf(plan), async (crew) => {
    const { replicas, semiSync } = plan;
    const set = await crew.start('servers', startReplication({ replicas, semiSync }));
    await prepareSet(set);
    return play(plan, set, crew);
  });
}

/** Makes the history with a prepared set, and leaves the former primary as it is. */
export function makeFailoverHistoryBefore(
  set: ReplicatedSet,
  plan: FailoverPlan,
): Promise<FailoverHistory> {
  return makeHistory(nameOf(plan), (crew) => play(plan, set, crew));
}

function nameOf({ how, seed }: FailoverPlan) {
  return { name: `a primary that is ${how}`, seed, maxMs };
}

/** Creates the tables on every server of a set. */
export async function prepareSet(set: ReplicatedSet): Promise<void> {
  await set.primary().query(writtenTable);
  const keys = describeCreation(parseIdempotencyTable('request_keys', set.target.name));
  await set.primary().query(keys);
  await set.waitForCatchUp();
}

function addressOf({ host, port }: { readonly host: string; readonly port: number }) {
  return { host, port };
}

async function play(plan: FailoverPlan, set: ReplicatedSet, crew: Crew): Promise<FailoverHistory> {
  const address = startFaultProxy(() => addressOf(set.primary()));
  const floating = await crew.start('an address', address);
  const starting = startGateway({
    database: plan.floating ? { ...set.target, ...addressOf(floating) } : set.target,
    settings: {
      pool: 6,
      idempotency_table: 'request_keys',
      statement_timeout: '15s',
      ...plan.settings,
    },
  });
  const gateway = await crew.start('a gateway', starting);
  // A set may have been written to by histories before this one.
  const before = [...(await countRows(set.primary())).keys()];
  const lastId = Math.max(0, ...before);
  const { writes, failover, former, sent } = await direct(
    plan,
    { set, gateway, floating },
    crew,
    lastId,
  );
  crew.note('stops the gateway');
  await crew.stop(gateway);
  crew.note('looks at the servers');
  const found = { ...(await look(set.primary(), former, lastId)), sentToFormer: sent };
  return { ...judgeFailover(writes, failover, found), counts: countAll(writes) };
}

type Stage = {
  readonly set: ReplicatedSet;
  readonly gateway: Gateway;
  readonly floating: FaultProxy;
};

async function direct(
  plan: FailoverPlan,
  { set, gateway, floating }: Stage,
  crew: Crew,
  lastId: number,
) {
  const writing = startWriting([gateway], { ...plan, lastId }, crew);
  const fail = async () => {
    crew.note('writes in peace');
    await writing.succeed(0);
    if (plan.losing) await lose(set, writing);
    crew.note('fails over');
    const { struckMs, promotedMs, former } = await failOver(set, plan.how, plan.afterMs);
    // Connections to the former primary end when its address is another's.
    floating.cutAll();
    crew.note('writes after the promotion');
    await writing.succeed(promotedMs).catch(() => undefined);
    crew.note('brings the former primary back');
    const returnedMs = former === null ? null : await bringBack(former);
    const before = former?.link.statements.length ?? 0;
    if (former !== null && !plan.floating) await waitUntilSeen(set, gateway, former);
    if (returnedMs !== null) await writing.succeed(performance.now()).catch(() => undefined);
    const sent = former?.link.statements.slice(before).filter(isWrite) ?? [];
    const isLossless = plan.semiSync || plan.how === 'read-only' || former === null;
    const { serviceMs } = plan;
    const times = { struckMs, promotedMs, returnedMs, isLossless };
    return {
      failover: serviceMs === undefined ? times : { ...times, serviceMs },
      former,
      sent,
    };
  };
  const run = await fail().finally(() => writing.end());
  crew.note('sends earlier requests again');
  return { ...run, writes: await askAgain(gateway, writing.writes, run.failover.struckMs) };
}

/** Three probes in succession that a busy machine does not delay by a second each. */
const seenWithin = { timeoutMs: 90_000 };

/** The gateway has seen that the former primary may be written to, and leaves it alone. */
async function waitUntilSeen(
  set: ReplicatedSet,
  gateway: Gateway,
  former: ReplicationServer,
): Promise<void> {
  const at = set.servers.indexOf(former);
  const isSeen = async () =>
    /writable beside the primary/.test((await reasonsOf(gateway))[at] ?? '');
  await eventually('the gateway knows the former primary', isSeen, seenWithin);
}

/** Writes go on, and no replica hears of them. */
async function lose(set: ReplicatedSet, writing: Writing): Promise<void> {
  for (const server of set.replicas()) await server.query('stop slave io_thread');
  await writing.succeed(performance.now());
}

/** Once the servers have nothing left to do; ids up to the last one of an earlier history are left out. */
async function look(
  primary: ReplicationServer,
  former: ReplicationServer | null,
  lastId: number,
): Promise<Omit<FailoverFound, 'sentToFormer'>> {
  const rowsOf = async (server: ReplicationServer) => {
    await waitUntilIdle(server);
    return new Map([...(await countRows(server))].filter(([id]) => id > lastId));
  };
  return {
    rows: await rowsOf(primary),
    former: former === null ? null : await rowsOf(former),
    keys: (await fetchKeptReplies(primary)).map(idOf).filter((id) => id > lastId),
  };
}
