// A history of writes while the node of a Galera cluster that is written to is struck and comes back: two gateways before three nodes.
// Ends with what contradicts the promises. Must not know how a write is judged.
import { describeCreation, parseLedgerTable } from '../../src/shared/ledger/ledger-table.ts';
import { eventually } from './eventually.ts';
import { type FailoverJudgement, judgeFailover } from './failover-judge.ts';
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
import type { GaleraCluster } from './galera.ts';
import { type GaleraNode, waitForSynced } from './galera-node.ts';
import { type Gateway, startGateway } from './gateway.ts';
import type { Breach } from './keyed-judge.ts';
import { readMetric } from './scrape.ts';

/** What becomes of the writer; `quorum`: it stays, and the two others are frozen. */
export const galeraStrikes = ['killed', 'frozen', 'desynced', 'isolated', 'quorum'] as const;
export type GaleraStrike = (typeof galeraStrikes)[number];

/** What is promised on Galera beside what is promised in every failover. */
export const galeraPromises = {
  one: 'while no node is struck the first of host is written to, by all workers of all gateways, and no other',
  peace: 'while no node is struck no transaction loses against another node’s',
  refused:
    'without a quorum a write is refused with NO_PRIMARY, and /readyz says that no server can serve',
  same: 'all nodes hold the same in the end',
} as const;

/** What is to happen. */
export type GaleraPlan = {
  readonly seed: number;
  readonly how: GaleraStrike;
  readonly clients: number;
};

/** What has happened. */
export type GaleraHistory = FailoverJudgement & {
  readonly counts: ReadonlyMap<string, number>;
  /** From the return of the node until it was written to again. */
  readonly backMs: number;
  /** What nodes and gateways said when nothing was served after the strike; null: writes went on. */
  readonly stalled: string | null;
};

const workers = 2;
const gatewayCount = 2;
/** Each write counts in one of so few rows: through two nodes at once they would conflict. */
const hotRows = 4;

/** Makes the history on a cluster whose nodes are all up, and leaves it so. */
export async function makeGaleraHistory(
  cluster: GaleraCluster,
  plan: GaleraPlan,
): Promise<GaleraHistory> {
  const [first] = cluster.nodes;
  await prepareTables(first, cluster.target.name);
  const gateways: Gateway[] = [];
  try {
    for (let count = 0; count < gatewayCount; count += 1) {
      gateways.push(await startGateway({ database: cluster.target, settings }));
    }
    return await play(cluster, plan, gateways);
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
  }
}

const settings = {
  workers,
  pool: 6,
  idempotency_table: 'request_keys',
  statement_timeout: '15s',
};

async function prepareTables(node: GaleraNode, database: string): Promise<void> {
  const rows = Array.from({ length: hotRows }, (_, id) => `(${id}, 0)`);
  await node.query(`
    drop table if exists written, request_keys, hot;
    ${writtenTable};
    alter table written add column n bigint auto_increment primary key;
    create table hot (id int primary key, n int not null);
    insert into hot values ${rows};
    create trigger heat after insert on written
      for each row update hot set n = n + 1 where hot.id = new.id % ${hotRows};
    ${describeCreation(parseLedgerTable('request_keys', database))}`);
}

async function play(
  cluster: GaleraCluster,
  { seed, how, clients }: GaleraPlan,
  gateways: readonly Gateway[],
): Promise<GaleraHistory> {
  const [first] = cluster.nodes;
  await waitForWriter(gateways, first);
  const writing = startWriting(gateways, { seed, clients });
  const direct = async () => {
    const before = await watchPeace(cluster, writing);
    const struckMs = performance.now();
    const refusals = await strike(cluster, how, gateways);
    await waitForSurvivor(cluster, how);
    const promotedMs = performance.now();
    const stalled = await writing.succeed(promotedMs).then(
      () => null,
      () => describeStall(cluster, gateways),
    );
    const returnedMs = await bringBack(cluster, how);
    await waitForWriter(gateways, first);
    const settledMs = performance.now();
    await writing.succeed(settledMs + restMs);
    const after = await watchPeace(cluster, writing);
    return {
      failover: { struckMs, promotedMs, settledMs, returnedMs: null, isLossless: true },
      backMs: settledMs - returnedMs,
      stalled,
      breaches: [...before, ...refusals, ...after],
    };
  };
  const run = await direct().finally(() => writing.end());
  const writes = await askAgain(gateways[0] as Gateway, writing.writes, run.failover.struckMs);
  for (const node of cluster.nodes) await eventually('all is over', () => isIdle(node));
  const kept = await first.query('select convert(reply using utf8mb4) as reply from request_keys');
  const judged = judgeFailover(writes, run.failover, {
    rows: await countRows(first),
    former: null,
    keys: kept.map(({ reply }) => idOf(String(reply))),
    sentToFormer: [],
  });
  const breaches = [...judged.breaches, ...run.breaches, ...(await compareNodes(cluster))];
  return {
    ...judged,
    breaches,
    counts: countAll(writes),
    backMs: run.backMs,
    stalled: run.stalled,
  };
}

/** What had been sent when the writer changed may still run beside it. */
const restMs = 1_000;

/** Resolves once all workers of all gateways write to this node. */
async function waitForWriter(gateways: readonly Gateway[], node: GaleraNode): Promise<void> {
  const labels = { backend: `${node.host}:${node.port}`, role: 'primary' };
  for (const gateway of gateways) {
    await eventually(`${node.name} is written to`, async () => {
      return (await readMetric(gateway, 'dbhttpd_backend_role', labels)) === workers;
    });
  }
}

/** A while of writes in which nothing happens to any node. */
async function watchPeace({ nodes }: GaleraCluster, writing: Writing): Promise<Breach[]> {
  const [, ...others] = nodes;
  const conflictsOf = async () =>
    (await Promise.all(nodes.map((node) => node.status()))).reduce(
      (sum, { conflicts }) => sum + conflicts,
      0,
    );
  const sentBefore = others.map(({ link }) => link.statements.length);
  const conflictsBefore = await conflictsOf();
  await writing.succeed(performance.now());
  const conflicts = (await conflictsOf()) - conflictsBefore;
  const sent = others.flatMap(({ link }, at) => link.statements.slice(sentBefore[at]));
  return [
    ...sent.filter(isWrite).map((example) => ({ promise: galeraPromises.one, example })),
    ...(conflicts === 0
      ? []
      : [{ promise: galeraPromises.peace, example: `${conflicts} conflicts` }]),
  ];
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
      const breaches = await Promise.all(gateways.map(findRefusal));
      for (const other of others) other.thaw();
      return breaches.flat();
    }
    default:
      throw new Error(`no such strike: ${how satisfies never}`);
  }
}

/** A gateway before a cluster without a quorum: ready no more, and refusing. */
async function findRefusal(gateway: Gateway): Promise<Breach[]> {
  const wrong = (example: string) => ({ promise: galeraPromises.refused, example });
  // Its workers find it out one by one.
  const usable = () => readMetric(gateway, 'dbhttpd_backend_role', { role: 'primary' });
  await eventually('nobody is written to', async () => (await usable()) === 0);
  const ready = await gateway.get('/readyz');
  const asked = { SQL: 'insert into written (id) values (0)', TIMEOUT: 500 };
  const { status, text } = await gateway.dbPost(asked);
  const unusable = '"roles":["unusable","unusable","unusable"]';
  const isTold =
    ready.status === 503 && ready.text.includes('NO_SERVER') && ready.text.includes(unusable);
  const isRefused = status === 503 && text.includes('NO_PRIMARY') && text.includes('not_executed');
  return [
    ...(isTold ? [] : [wrong(`/readyz: ${ready.status} ${ready.text}`)]),
    ...(isRefused ? [] : [wrong(`${status} ${text}`)]),
  ];
}

/** Resolves once another node, or after a loss of quorum the first one, may be written to. */
async function waitForSurvivor({ nodes }: GaleraCluster, how: GaleraStrike): Promise<void> {
  const [first, second] = nodes;
  await waitForSynced((how === 'quorum' ? first : second).status);
  if (how === 'desynced' || how === 'quorum') return;
  await eventually('the others go on', async () => (await second.status()).size === 2);
}

/** Whether it was the cluster that did not go on, or a gateway that did not follow. */
async function describeStall(
  { nodes }: GaleraCluster,
  gateways: readonly Gateway[],
): Promise<string> {
  const states = nodes.map(async (node) => {
    if (node.state() !== 'running') return `${node.name} ${node.state()}`;
    return `${node.name} ${JSON.stringify(await node.status())}`;
  });
  const last = gateways.map((gateway) => gateway.log().split('\n').slice(-8).join('\n'));
  return [...(await Promise.all(states)), ...last].join('\n');
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

async function compareNodes({ nodes }: GaleraCluster): Promise<Breach[]> {
  const held = await Promise.all(
    nodes.map(async (node) => {
      const [row] = await node.query(`
        select (select count(*) from written) as written, (select sum(id) from written) as ids,
          (select sum(n) from hot) as hot, (select count(*) from request_keys) as keys_kept`);
      return { name: node.name, ...row };
    }),
  );
  const same = (row: object) => JSON.stringify({ ...row, name: '' });
  const isSame = held.every((row) => same(row) === same(held[0] ?? {}));
  const isCounted = held.every(
    (row) => Number(Reflect.get(row, 'hot')) === Number(Reflect.get(row, 'written')),
  );
  return isSame && isCounted
    ? []
    : [{ promise: galeraPromises.same, example: JSON.stringify(held) }];
}
