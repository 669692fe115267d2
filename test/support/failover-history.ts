// A history of writes during one failover: a gateway before a replicated set, clients that write all the time, a primary that is struck, a replica
// that is promoted, the former primary back. Ends with what contradicts the promises.
// Must not know how a write is judged.
import { setTimeout as pause } from 'node:timers/promises';
import { describeCreation, parseLedgerTable } from '../../src/shared/ledger/ledger-table.ts';
import { eventually } from './eventually.ts';
import { type FailoverFound, type FailoverJudgement, judgeFailover } from './failover-judge.ts';
import { bringBack, failOver, type Strike } from './failover-strikes.ts';
import { drawWay, idOf, repeat, type Write, writeRow, writtenTable } from './failover-writes.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { type Gateway, startGateway } from './gateway.ts';
import type { Settings } from './ini-text.ts';
import { createRandom } from './random.ts';
import { type ReplicatedSet, startReplication } from './replication.ts';
import type { ReplicationServer } from './replication-server.ts';
import { describe, isSuccess } from './told.ts';

/** What is to happen. */
export type FailoverPlan = {
  readonly seed: number;
  readonly how: Strike;
  /** 0: a primary alone, which can only be `restarted`. */
  readonly replicas: number;
  readonly clients: number;
  /** From the strike to the promotion. */
  readonly afterMs: number;
  /** Writes wait for a replica: none that was told may be lost. */
  readonly semiSync: boolean;
  /** Replicas get nothing of the last writes before the strike, which are lost: they were told all the same. */
  readonly losing: boolean;
  /** The gateway knows one address alone, which somebody else moves to the new primary; else it is to find out itself who that is. */
  readonly floating: boolean;
  /** Further keys of the gateway's section. */
  readonly settings?: Settings;
};

/** What has happened. */
export type FailoverHistory = FailoverJudgement & {
  /** How many writes there were, and how many requests ended in which way. */
  readonly counts: ReadonlyMap<string, number>;
};

/** So many writes succeed before the strike, after the promotion, and after the return. */
const enoughWrites = 100;
/** A gateway that serves nothing any more is judged then. */
const mostSilenceMs = 30_000;
/** A server that had been gone is looked at three times, once a second, before it counts: so long it must not be written to at least. */
const returnMs = 4_000;
/** Clients rest between two writes, so that a round is thousands of them and not more. */
const restMs = 5;
/** So many of the last writes with a key from before the failover are asked for again after it. */
const repeatedWrites = 100;

/** Starts what is needed, makes the history, ends all that was started. */
export async function makeFailoverHistory(plan: FailoverPlan): Promise<FailoverHistory> {
  const { replicas, semiSync } = plan;
  const set = await startReplication({ replicas, semiSync });
  const floating = await startFaultProxy(() => addressOf(set.primary()));
  let gateway: Gateway | null = null;
  try {
    await set.primary().query(writtenTable);
    const keys = describeCreation(parseLedgerTable('request_keys', set.target.name));
    await set.primary().query(keys);
    await set.waitForCatchUp();
    gateway = await startGateway({
      database: plan.floating ? { ...set.target, ...addressOf(floating) } : set.target,
      settings: {
        pool: 6,
        idempotency_table: 'request_keys',
        statement_timeout: '15s',
        ...plan.settings,
      },
    });
    const { writes, failover, former, sent } = await play(plan, set, gateway, floating);
    await gateway.stop();
    gateway = null;
    const found = { ...(await look(set.primary(), former)), sentToFormer: sent };
    return { ...judgeFailover(writes, failover, found), counts: countAll(writes) };
  } finally {
    await gateway?.stop();
    await floating.stop();
    await set.stop();
  }
}

function addressOf({ host, port }: { readonly host: string; readonly port: number }) {
  return { host, port };
}

async function play(
  plan: FailoverPlan,
  set: ReplicatedSet,
  gateway: Gateway,
  floating: FaultProxy,
) {
  const random = createRandom(plan.seed);
  const writes: Write[] = [];
  let lastId = 0;
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      lastId += 1;
      writes.push(await writeRow(gateway, lastId, drawWay(random)));
      await pause(restMs);
    }
  };
  const director = async () => {
    try {
      await succeed(writes, 0);
      if (plan.losing) await lose(set, writes);
      const { struckMs, promotedMs, former } = await failOver(set, plan.how, plan.afterMs);
      // Connections to the former primary end when its address is another's.
      floating.cutAll();
      await succeed(writes, promotedMs).catch(() => undefined);
      const returnedMs = former === null ? null : await bringBack(former);
      const before = former?.link.statements.length ?? 0;
      if (former !== null) await pause(returnMs);
      const sent = former?.link.statements.slice(before).filter(isWrite) ?? [];
      const isLossless = plan.semiSync || plan.how === 'read-only' || former === null;
      return { failover: { struckMs, promotedMs, returnedMs, isLossless }, former, sent };
    } finally {
      isOver = true;
    }
  };
  const clients = Array.from({ length: plan.clients }, client);
  const [run] = await Promise.all([director(), ...clients]);
  return { ...run, writes: await askAgain(gateway, writes, run.failover.struckMs) };
}

/** Writes go on, and no replica hears of them. */
async function lose(set: ReplicatedSet, writes: readonly Write[]): Promise<void> {
  for (const server of set.replicas()) await server.query('stop slave io_thread');
  await succeed(writes, performance.now());
}

const isWrite = (statement: string) => /^\s*(insert|update|delete|commit)\b/i.test(statement);

/** Resolves when so many writes that ended after this moment have succeeded. */
async function succeed(writes: readonly Write[], fromMs: number): Promise<void> {
  const isEnough = () => {
    const ended = writes.filter(({ told }) =>
      told.some((one) => isSuccess(one) && one.toMs >= fromMs),
    );
    return ended.length >= enoughWrites;
  };
  await eventually('writes succeed', isEnough, { timeoutMs: mostSilenceMs, everyMs: 20 });
}

/** What was told with a key before the failover can be asked for afterwards: it is there, or is written now. */
async function askAgain(
  gateway: Gateway,
  writes: readonly Write[],
  struckMs: number,
): Promise<Write[]> {
  const isOld = ({ way, told }: Write) =>
    way === 'batch with key' && told.every(({ toMs }) => toMs <= struckMs);
  const last = new Set(writes.filter(isOld).slice(-repeatedWrites));
  const asked: Write[] = [];
  for (const write of last) asked.push(await repeat(gateway, write));
  return [...writes.filter((write) => !last.has(write)), ...asked];
}

/** With no gateway between, once the servers have nothing left to do. */
async function look(
  primary: ReplicationServer,
  former: ReplicationServer | null,
): Promise<Omit<FailoverFound, 'sentToFormer'>> {
  for (const server of former === null ? [primary] : [primary, former]) {
    await eventually(`${server.name} has ended what it still ran`, () => isIdle(server));
  }
  const kept = await primary.query(
    'select convert(reply using utf8mb4) as reply from request_keys',
  );
  return {
    rows: await countRows(primary),
    former: former === null ? null : await countRows(former),
    keys: kept.map(({ reply }) => idOf(String(reply))),
  };
}

async function isIdle(server: ReplicationServer): Promise<boolean> {
  const busy = await server.query(
    "select id from information_schema.processlist where db = database() and id <> connection_id() and command <> 'Sleep'",
  );
  return busy.length === 0;
}

async function countRows(server: ReplicationServer): Promise<ReadonlyMap<number, number>> {
  const rows = await server.query('select id, count(*) as n from written group by id');
  return new Map(rows.map(({ id, n }) => [Number(id), Number(n)]));
}

function countAll(writes: readonly Write[]): ReadonlyMap<string, number> {
  const counts = new Map([['writes', writes.length]]);
  for (const told of writes.flatMap((write) => write.told)) {
    const what = describe(told);
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return counts;
}
