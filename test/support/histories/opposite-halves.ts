// Two workers of one instance, of which one reaches a former primary alone and the other one its successor: which of them writes, and where.
// It has the product's own topologies before real servers, and the supervisor's own memory on a disk.
import type { Connection } from '../../../src/shared/mysql/connection.ts';
import { minArenaBytes, openConnection } from '../../../src/shared/mysql/open-connection.ts';
import type { Log } from '../../../src/shared/process/log.ts';
import type { PrimaryMemory } from '../../../src/shared/servers/primary-memory.ts';
import {
  openPrimaryMemories,
  type PrimaryMemories,
} from '../../../src/supervisor/primary/primary-memories.ts';
import { Topology } from '../../../src/worker/servers/topology.ts';
import type { ReplicatedSet } from '../clusters/replication.ts';
import type { ReplicationServer } from '../clusters/replication-server.ts';
import { eventually } from '../eventually.ts';

/** The server to which each worker writes. */
export type HalvesStep = {
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  readonly evidence: string;
};

const section = 'world';
const ignore = () => {};
const log: Log = { debug: null, info: ignore, warn: ignore, error: ignore, reopen: ignore };

/** A worker that does not reach every server. */
type HalfWorker = {
  readonly topology: Topology;
  /** From now on the worker does not reach these. */
  readonly lose: (...servers: readonly ReplicationServer[]) => void;
};

/** The memory of an instance, and its workers. `isDeaf`: the instance is gone when the disk has the memory. */
type Instance = {
  readonly memories: PrimaryMemories;
  readonly add: (...lost: readonly ReplicationServer[]) => HalfWorker;
  readonly isDeaf: { value: boolean };
  readonly end: () => void;
};

function startInstance(set: ReplicatedSet, stateDir: string): Instance {
  const workers: HalfWorker[] = [];
  const isDeaf = { value: false };
  const tell = (_section: string, memory: PrimaryMemory) => {
    if (!isDeaf.value) for (const { topology } of workers) topology.remember(memory);
  };
  const [first, ...others] = set.servers.map(({ host, port }) => ({ host, port, socket: null }));
  if (first === undefined) throw new Error('a set has a server');
  const memories = openPrimaryMemories(
    [{ section, stateDir, candidates: [first, ...others] }],
    log,
    tell,
  );
  return {
    memories,
    isDeaf,
    add: (...lost) => {
      const worker = startWorker(set, lost, memories, isDeaf);
      workers.push(worker);
      return worker;
    },
    end: () => {
      memories.freeze();
      for (const { topology } of workers) topology.close();
    },
  };
}

function startWorker(
  set: ReplicatedSet,
  lost: readonly ReplicationServer[],
  memories: PrimaryMemories,
  isDeaf: Instance['isDeaf'],
): HalfWorker {
  const unreached = new Set(lost);
  const open = new Map<ReplicationServer, Connection>();
  const arena = Buffer.allocUnsafeSlow(minArenaBytes);
  const topology = new Topology({
    candidates: set.servers.map((server) => ({
      address: `${server.host}:${server.port}`,
      connect: async (signal) => {
        if (unreached.has(server)) throw Object.assign(new Error('cut'), { code: 'ECONNREFUSED' });
        const connection = await openConnection(settingsOf(set, server, arena), signal);
        open.set(server, connection);
        return connection;
      },
      onReturn: () => {},
    })),
    section,
    maxLagMs: 10_000,
    memory: memories.inForce()[section] ?? null,
    proposePrimary: async (base, memory) => {
      const answer = await memories.propose({ section, base, memory });
      return isDeaf.value ? null : answer;
    },
    onJudged: ignore,
    log,
  });
  topology.start();
  return {
    topology,
    lose: (...servers) => {
      for (const server of servers) {
        unreached.add(server);
        open.get(server)?.destroy(new Error('cut'));
      }
    },
  };
}

function settingsOf({ target }: ReplicatedSet, { host, port }: ReplicationServer, arena: Buffer) {
  const { user, password, name: database } = target;
  const where = { host, port, socket: null, user, password, database, arena };
  const security = { tls: null, serverKeys: [] };
  return { ...where, ...security, connectTimeoutMs: 2_000 };
}

/** @param stateDirOf a directory for what an instance remembers, by a name */
export async function playOppositeHalves(
  set: ReplicatedSet,
  stateDirOf: (name: string) => string,
): Promise<readonly HalvesStep[]> {
  const [a, b, c] = set.servers as [ReplicationServer, ReplicationServer, ReplicationServer];
  const steps: HalvesStep[] = [];
  const expect = async (
    what: string,
    workers: readonly HalfWorker[],
    expected: readonly string[],
  ) => {
    const tell = () => workers.map(({ topology: { primary } }) => nameOf(set, primary)).sort();
    const isReached = () => tell().join() === expected.toSorted().join();
    await eventually(what, isReached, { everyMs: 20 }).catch(ignore);
    const evidence = workers.flatMap(({ topology: { none } }) => none?.evidence ?? []).join(' | ');
    steps.push({
      what,
      expected: expected.toSorted().join(),
      found: tell().join(),
      evidence: ` (${evidence})`,
    });
  };

  const instance = startInstance(set, stateDirOf('usual'));
  const [left, right] = [instance.add(), instance.add()];
  await expect('both reach all', [left, right], ['db1', 'db1']);
  left.lose(b, c);
  right.lose(a);
  await b.query('stop slave; reset slave all; set global read_only = 0');
  await set.follow(c, b);
  await expect(
    'one reaches the old primary, the other one the new one',
    [left, right],
    ['db2', 'nothing'],
  );
  instance.end();

  const fresh = startInstance(set, stateDirOf('fresh'));
  const halves = [fresh.add(b, c), fresh.add(a, c)];
  await eventually('one has won', () => fresh.memories.inForce()[section] !== undefined);
  const winner =
    fresh.memories.inForce()[section]?.primary.address === `${a.host}:${a.port}` ? 'db1' : 'db2';
  await expect('both propose at once, and remember nothing', halves, [winner, 'nothing']);
  fresh.end();

  const killed = startInstance(set, stateDirOf('killed'));
  killed.isDeaf.value = true;
  const asking = killed.add(a);
  await eventually('the disk has it', () => killed.memories.inForce()[section] !== undefined);
  await expect('the instance is killed before it answers', [asking], ['nothing']);
  killed.end();
  const next = startInstance(set, stateDirOf('killed'));
  await expect('the next one reaches the old primary alone', [next.add(b, c)], ['nothing']);
  await expect('and all of them', [next.add()], ['db2']);
  next.end();
  return steps;
}

function nameOf({ servers }: ReplicatedSet, at: number | null): string {
  return at === null ? 'nothing' : (servers[at]?.name ?? '?');
}
