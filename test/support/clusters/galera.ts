// A Galera cluster of three nodes, each of which may be written to: its start, and an operator's commands.
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync } from 'node:fs';
import type { GaleraPrograms } from '../../../scripts/support/galera-root.ts';
import { createDataDirectory } from '../../../scripts/support/private-server.ts';
import { queryOnce } from '../database/mariadb.ts';
import { userToRunAs } from '../database/server-process.ts';
import { eventually } from '../eventually.ts';
import { createGaleraSeed, type GaleraNode, type GaleraSeed } from './galera-node.ts';
import type { ReplicatedSet } from './replication.ts';

/** A cluster. The caller must stop it. */
export type GaleraCluster = {
  /** In the order of the configuration. */
  readonly nodes: readonly [GaleraNode, GaleraNode, GaleraNode];
  /** The gateway's configuration: every node by its link, and an account with ALL on this one database. */
  readonly target: ReplicatedSet['target'];
  /** Resolves once all nodes are up, and agree. */
  readonly waitForAll: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** Starts three nodes, with an account and an empty database. Takes ten seconds. */
export async function startGalera(programs: GaleraPrograms): Promise<GaleraCluster> {
  const database = `dbhttpd_test_${process.pid}_${randomBytes(4).toString('hex')}`;
  const account = { user: 'app', password: randomBytes(12).toString('hex') };
  const rootPassword = randomBytes(12).toString('hex');
  const create = (number: number) => createGaleraSeed({ number, programs, database, rootPassword });
  const seeds = [await create(1), await create(2), await create(3)] as const;
  try {
    const [first, ...others] = seeds;
    const { files } = first;
    const members = seeds.map(({ groupPort }) => `127.0.0.1:${groupPort}`).join();
    const join = [`--wsrep-cluster-address=gcomm://${members}`];
    createDataDirectory({ program: programs.server, files, rootPassword, runAs: userToRunAs() });
    await first.start([...join, '--wsrep-new-cluster']);
    const owner = { host: '127.0.0.1', port: first.port, user: 'root', password: rootPassword };
    await eventually('the first node is ready', async () => {
      const { user, password } = account;
      await queryOnce(
        owner,
        undefined,
        `create database ${database} character set utf8mb4;
         create user '${user}'@'127.0.0.1' identified by '${password}';
         grant all on ${database}.* to '${user}'@'127.0.0.1'`,
      );
      return true;
    });
    // The other nodes start with the same data, so they need no copy.
    await first.shutdown();
    for (const other of others) copyData(first, other);
    await first.start([...join, '--wsrep-new-cluster']);
    for (const other of others) await other.start(join);
    const nodes = await Promise.all(seeds.map((seed) => seed.open(join)));
    const waitForAll = async () => {
      await eventually('all nodes agree', async () => {
        const all = await Promise.all(nodes.map((node) => node.status()));
        return all.every(({ isReady, state, size }) => isReady && state === 4 && size === 3);
      });
    };
    await waitForAll();
    return {
      nodes: nodes as [GaleraNode, GaleraNode, GaleraNode],
      target: {
        ...account,
        name: database,
        host: nodes.map(({ host, port }) => `${host}:${port}`).join(', '),
      },
      waitForAll,
      stop: async () => {
        await Promise.all(nodes.map((node) => node.stop()));
      },
    };
  } catch (error) {
    await Promise.all(seeds.map((seed) => seed.remove()));
    throw error;
  }
}

function copyData(from: GaleraSeed, to: GaleraSeed): void {
  const isOwn = (path: string) => /gvwstate\.dat$|galera\.cache$/.test(path);
  cpSync(from.files.data, to.files.data, { recursive: true, filter: (path) => !isOwn(path) });
  mkdirSync(to.files.tmp, { recursive: true, mode: 0o700 });
}
