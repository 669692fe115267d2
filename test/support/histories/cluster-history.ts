// The common parts of histories of writes to a cluster whose nodes all accept writes: gateways, tables in which two writers would conflict,
// a quiet time, and the content of all nodes in the end.
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { LinkedServer } from '../clusters/linked-server.ts';
import { eventually } from '../eventually.ts';
import { type Gateway, startGateway, type Target } from '../gateway.ts';
import type { Settings } from '../ini-text.ts';
import { readMetric } from '../scrape.ts';
import type { Crew } from './crew.ts';
import { type Failover, type FailoverJudgement, judgeFailover } from './failover-judge.ts';
import { idOf, type Write, writtenTable } from './failover-writes.ts';
import { countAll, countRows, isWrite, type Writing } from './failover-writing.ts';
import type { Breach } from './judging.ts';
import { fetchKeptReplies, waitUntilIdle } from './server-look.ts';

/** A node as clients and the test reach it. */
export type ClusterNode = Pick<LinkedServer, 'name' | 'host' | 'port' | 'link' | 'query'> & {
  /** Transactions of clients that lost against another node's, so far. */
  readonly conflicts: () => Promise<number>;
};

/** The events of a history. */
export type ClusterHistory = FailoverJudgement & {
  readonly counts: ReadonlyMap<string, number>;
  /** From the return of the struck node until the gateways had settled on it. */
  readonly backMs: number;
  /** The reports of nodes and gateways when nothing was served after the strike; null: writes went on. */
  readonly stalled: string | null;
};

/** Far more than a strike, a return and a look take. */
export const clusterMostMs = 400_000;
/** Statements that were sent when the writer changed may still run beside it. */
export const clusterRestMs = 1_000;

const workers = 2;
const gatewayCount = 2;
/** Each write counts in one of so few rows: through two nodes at once they would conflict. */
const hotRows = 4;

/** Starts gateways before a cluster, which end with the history. */
export async function startGateways(
  crew: Crew,
  target: Target,
  further: Settings = {},
): Promise<readonly Gateway[]> {
  const own = { workers, pool: 6, idempotency_table: 'request_keys', statement_timeout: '15s' };
  const gateways: Gateway[] = [];
  for (let count = 0; count < gatewayCount; count += 1) {
    const starting = startGateway({ database: target, settings: { ...own, ...further } });
    gateways.push(await crew.start('a gateway', starting));
  }
  return gateways;
}

/** Empty tables, in the place of those that an earlier history has left. */
export async function prepareTables(node: ClusterNode, database: string): Promise<void> {
  const rows = Array.from({ length: hotRows }, (_, id) => `(${id}, 0)`);
  await node.query(`
    drop table if exists written, request_keys, hot;
    ${writtenTable};
    alter table written add column n bigint auto_increment primary key;
    create table hot (id int primary key, n int not null);
    insert into hot values ${rows};
    create trigger heat after insert on written
      for each row update hot set n = n + 1 where hot.id = new.id % ${hotRows};
    ${describeCreation(parseIdempotencyTable('request_keys', database))}`);
}

/** Resolves once a node has this role for all workers of all gateways. */
export async function waitForRole(
  gateways: readonly Gateway[],
  { name, host, port }: ClusterNode,
  role: 'primary' | 'replica' | 'unusable',
): Promise<void> {
  for (const gateway of gateways) {
    await eventually(`${name} is ${role}`, async () => {
      const labels = { backend: `${host}:${port}`, role };
      return (await readMetric(gateway, 'dbhttpd_backend_role', labels)) === workers;
    });
  }
}

/** A while of writes in which nothing happens to any node. @param promises what each breach is called */
export async function watchPeace(
  nodes: readonly ClusterNode[],
  writer: ClusterNode,
  writing: Writing,
  promises: { readonly one: string; readonly peace: string },
): Promise<Breach[]> {
  const others = nodes.filter((node) => node !== writer);
  const conflictsOf = async () =>
    (await Promise.all(nodes.map((node) => node.conflicts()))).reduce((sum, one) => sum + one, 0);
  const sent = watchWrites(others);
  const conflictsBefore = await conflictsOf();
  await writing.succeed(performance.now());
  const conflicts = (await conflictsOf()) - conflictsBefore;
  return [
    ...sent().map((example) => ({ promise: promises.one, example })),
    ...(conflicts === 0 ? [] : [{ promise: promises.peace, example: `${conflicts} conflicts` }]),
  ];
}

/** Watches from now on. The returned function reports which writes have been sent to these nodes since. */
export function watchWrites(nodes: readonly ClusterNode[]): () => string[] {
  const before = nodes.map(({ link }) => link.statements.length);
  return () =>
    nodes
      .flatMap(({ link }, at) => link.statements.slice(before[at]))
      .filter((text) => isWrite(text));
}

/** A gateway before a cluster that takes no writes: not ready any more, and rejecting. @param reason is in its log, where that is promised */
export async function findRefusal(
  gateway: Gateway,
  promise: string,
  reason = '',
): Promise<Breach[]> {
  const wrong = (example: string) => ({ promise, example });
  // Its workers find it out one by one.
  const usable = () => readMetric(gateway, 'dbhttpd_backend_role', { role: 'primary' });
  await eventually('no server gets writes', async () => (await usable()) === 0);
  const ready = await gateway.get('/readyz');
  const asked = { SQL: 'insert into written (id) values (0)', TIMEOUT: 500 };
  const { status, text } = await gateway.dbPost(asked);
  const unusable = '"roles":["unusable","unusable","unusable"]';
  const isReported =
    ready.status === 503 && ready.text.includes('NO_SERVER') && ready.text.includes(unusable);
  const isRefused = status === 503 && text.includes('NO_PRIMARY') && text.includes('not_executed');
  return [
    ...(isReported ? [] : [wrong(`/readyz: ${ready.status} ${ready.text}`)]),
    ...(isRefused ? [] : [wrong(`${status} ${text}`)]),
    ...(gateway.log().includes(reason) ? [] : [wrong(`the log does not say: ${reason}`)]),
  ];
}

/** Explains whether the cluster did not go on, or a gateway did not follow. */
export async function describeStall(
  nodes: readonly (Pick<LinkedServer, 'name' | 'state'> & {
    readonly status: () => Promise<object>;
  })[],
  gateways: readonly Gateway[],
): Promise<string> {
  const states = nodes.map(async (node) => {
    if (node.state() !== 'running') return `${node.name} ${node.state()}`;
    return `${node.name} ${JSON.stringify(await node.status())}`;
  });
  const last = gateways.map((gateway) => gateway.log().split('\n').slice(-8).join('\n'));
  return [...(await Promise.all(states)), ...last].join('\n');
}

/** Judges what was written by what the nodes hold, all of which are up. @param same what it is called when they differ */
export async function judgeWrites(
  writes: readonly Write[],
  failover: Failover,
  found: {
    readonly nodes: readonly ClusterNode[];
    readonly sentToFormer: readonly string[];
    readonly same: string;
  },
): Promise<FailoverJudgement & Pick<ClusterHistory, 'counts'>> {
  const { nodes, sentToFormer, same } = found;
  for (const node of nodes) await waitUntilIdle(node);
  const differing = await compareNodes(nodes);
  const [first] = nodes;
  if (first === undefined) throw new Error('a cluster has a node');
  const kept = await fetchKeptReplies(first);
  const judged = judgeFailover(writes, failover, {
    rows: await countRows(first),
    former: null,
    keys: kept.map(idOf),
    sentToFormer,
  });
  const breaches = differing.map((example) => ({ promise: same, example }));
  return { ...judged, breaches: [...judged.breaches, ...breaches], counts: countAll(writes) };
}

/** Nodes apply what others have written a moment later. */
const maxDelayMs = 10_000;

/** The differences between the nodes, and counts that are not those of the rows; nothing if all is right. */
async function compareNodes(nodes: readonly ClusterNode[]): Promise<string[]> {
  let held: object[] = [];
  const agree = async () => {
    held = await Promise.all(nodes.map(readHeld));
    return held.every((row) => areAlike(row, held[0] ?? {}));
  };
  const limits = { timeoutMs: maxDelayMs, everyMs: 200 };
  return eventually('all nodes hold the same', agree, limits).then(
    () => [],
    () => [JSON.stringify(held)],
  );
}

async function readHeld(node: ClusterNode): Promise<object> {
  const [row] = await node.query(`
    select (select count(*) from written) as written, (select sum(id) from written) as ids,
      (select sum(n) from hot) as hot, (select count(*) from request_keys) as keys_kept`);
  return { name: node.name, ...row };
}

function areAlike(one: object, other: object): boolean {
  const without = (row: object) => JSON.stringify({ ...row, name: '' });
  const isCounted = Number(Reflect.get(one, 'hot')) === Number(Reflect.get(one, 'written'));
  return isCounted && without(one) === without(other);
}
