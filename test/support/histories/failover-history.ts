// A history of writes during one failover: a gateway before a replicated set, clients that write all the time, a primary that is struck, a replica
// that is promoted, the former primary back. Ends with what contradicts the promises.
// Must not know how a write is judged.
import { setTimeout as pause } from 'node:timers/promises';
import { describeCreation, parseLedgerTable } from '../../../src/shared/ledger/ledger-table.ts';
import { type ReplicatedSet, startReplication } from '../clusters/replication.ts';
import type { ReplicationServer } from '../clusters/replication-server.ts';
import { type FaultProxy, startFaultProxy } from '../database/fault-proxy.ts';
import { eventually } from '../eventually.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import type { Settings } from '../ini-text.ts';
import { type FailoverFound, type FailoverJudgement, judgeFailover } from './failover-judge.ts';
import { bringBack, failOver, type Strike } from './failover-strikes.ts';
import { idOf, writtenTable } from './failover-writes.ts';
import {
  askAgain,
  countAll,
  countRows,
  isIdle,
  isWrite,
  startWriting,
  type Writing,
} from './failover-writing.ts';

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

/** A server that had been gone is looked at three times, once a second, before it counts: so long it must not be written to at least. */
const returnMs = 4_000;
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
  const writing = startWriting([gateway], plan);
  const direct = async () => {
    await writing.succeed(0);
    if (plan.losing) await lose(set, writing);
    const { struckMs, promotedMs, former } = await failOver(set, plan.how, plan.afterMs);
    // Connections to the former primary end when its address is another's.
    floating.cutAll();
    await writing.succeed(promotedMs).catch(() => undefined);
    const returnedMs = former === null ? null : await bringBack(former);
    const before = former?.link.statements.length ?? 0;
    if (former !== null) await pause(returnMs);
    const sent = former?.link.statements.slice(before).filter(isWrite) ?? [];
    const isLossless = plan.semiSync || plan.how === 'read-only' || former === null;
    return { failover: { struckMs, promotedMs, returnedMs, isLossless }, former, sent };
  };
  const run = await direct().finally(() => writing.end());
  return { ...run, writes: await askAgain(gateway, writing.writes, run.failover.struckMs) };
}

/** Writes go on, and no replica hears of them. */
async function lose(set: ReplicatedSet, writing: Writing): Promise<void> {
  for (const server of set.replicas()) await server.query('stop slave io_thread');
  await writing.succeed(performance.now());
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
