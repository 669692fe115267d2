// The cells of a benchmark: each workload under several loads, and the peers that run beside the gateway.
import { isClient, type Peer } from './peers.ts';
import { type Workload, workloads } from './workloads.ts';

/** The number of connections that ask at once, and whether each request opens a new one. */
export type Load = { readonly connections: number; readonly close: boolean };

/** One row of the result: a workload under a load, run by some peers in turn. */
export type Cell = {
  readonly id: string;
  readonly workload: Workload;
  readonly load: Load;
  readonly peers: readonly Peer[];
  /** A target uses this cell, so it is measured for longer, beside every peer that is of use there. */
  readonly decides: boolean;
};

const keepAlive = (connections: number): Load => ({ connections, close: false });
const closing = (connections: number): Load => ({ connections, close: true });

const pools: readonly Peer[] = ['gateway', 'fastify', 'fastify-tuned'];
const batching: readonly Peer[] = ['gateway-v1', 'gateway-keys', 'fastify', 'fastify-tuned'];

/** The peers of the cells that decide. */
const deciding: Readonly<Record<string, readonly Peer[]>> = {
  'bulk/1': [...pools, 'client'],
  'bulk/8': pools,
  'point/64': [
    ...pools,
    'gateway-unix',
    'gateway-unlogged',
    'gateway-post',
    'gateway-v1',
    'gateway-named',
    'constant',
    'client',
    'client-unix',
  ],
  'point/256': pools,
  'point/48-close': [...pools, 'constant', 'constant-none'],
  'join/16': [...pools, 'gateway-unix', 'constant', 'client', 'client-unix'],
  'thousand/16': [...pools, 'gateway-post', 'gateway-v1', 'gateway-named', 'client'],
  'insert/16': [...pools, 'gateway-post', 'gateway-v1', 'constant', 'client'],
  'batch/16': batching,
};

// The loads that decide come first. By then every setting of the gateway has had the same exercise.
const loads: Readonly<Record<string, readonly Load[]>> = {
  bulk: [closing(1), closing(8)],
  point: [keepAlive(64), keepAlive(256), closing(48), keepAlive(1), keepAlive(16)],
  join: [keepAlive(16), keepAlive(1), closing(48)],
  thousand: [keepAlive(16), keepAlive(1), closing(48)],
  insert: [keepAlive(16), keepAlive(1), keepAlive(64), closing(48)],
  batch: [keepAlive(16)],
};

// Large results always use a new connection, so their names do not mention it.
function cellId({ name }: Workload, { connections, close }: Load): string {
  return `${name}/${connections}${close && name !== 'bulk' ? '-close' : ''}`;
}

/** Tells whether a peer can run this cell. sysbench keeps its connections, and fetches large results with either kind of load. */
export function fits(peer: Peer, { workload, load }: Pick<Cell, 'workload' | 'load'>): boolean {
  if (workload.kind === 'batch') return batching.includes(peer);
  return peer !== 'gateway-keys' && (!isClient(peer) || !load.close || workload.name === 'bulk');
}

/** `64 keep-alive`, or `48 closing`. */
export function describeLoad({ connections, close }: Load): string {
  return `${connections} ${close ? 'closing' : 'keep-alive'}`;
}

/** All cells in the order of a round. Large results come first, so that memory growth is measured on fresh heaps. */
export function listCells(): Cell[] {
  return workloads.flatMap((workload) =>
    (loads[workload.name] ?? []).map((load): Cell => {
      const id = cellId(workload, load);
      const compared = deciding[id];
      const decides = compared !== undefined;
      return { id, workload, load, peers: compared ?? ['gateway', 'fastify'], decides };
    }),
  );
}
