// One node of a Galera cluster: its process, a link that clients reach it by, and a way around that link for the test.
import type { ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import type { GaleraPrograms } from '../../../scripts/support/galera-root.ts';
import { hasEnded, launchServer } from '../../../scripts/support/launch-server.ts';
import {
  freeLastingPort,
  listenArguments,
  type ServerFiles,
  serverArguments,
  serverFiles,
} from '../../../scripts/support/private-server.ts';
import { type FaultProxy, startFaultProxy } from '../database/fault-proxy.ts';
import { queryOnce, type Row } from '../database/mariadb.ts';
import { eventually } from '../eventually.ts';
import { freeze } from '../processes.ts';
import { createWorkspace } from '../workspace.ts';

/** The status that a node reports. */
export type GaleraStatus = {
  /** Whether it is in a part of the cluster that may write. */
  readonly isPrimary: boolean;
  /** Whether it executes statements. */
  readonly isReady: boolean;
  /** Synced is 4. */
  readonly state: number;
  readonly size: number;
  /** Transactions of clients that lost against another node's, so far. */
  readonly conflicts: number;
};

/** A node that runs, is frozen, or is gone for a while. */
export type GaleraNode = {
  /** `db1`, `db2` …, in the order of the cluster. */
  readonly name: string;
  /** The address for clients: its link, on a port that remains the same whatever happens to the node. */
  readonly host: string;
  readonly port: number;
  readonly link: FaultProxy;
  readonly state: () => 'running' | 'frozen' | 'killed';
  readonly log: () => string;
  /** Runs a statement as root, without the link. */
  readonly query: (sql: string, values?: readonly unknown[]) => Promise<Row[]>;
  readonly status: () => Promise<GaleraStatus>;
  /** Transactions of clients that lost against another node's, so far. */
  readonly conflicts: () => Promise<number>;
  /** SIGSTOP: connections stay open without an answer. The other nodes go on without it after a second. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  /** SIGKILL. Its link refuses connections until `restart`. */
  readonly kill: () => Promise<void>;
  /** Starts a killed node again; it joins the others, and is synced when this resolves. */
  readonly restart: () => Promise<void>;
  /** It goes on, and need not keep up with the others: such a node is not to be used. */
  readonly desync: (on: boolean) => Promise<void>;
  /** It hears nothing of the others and they nothing of it, while clients reach them all. */
  readonly isolate: (on: boolean) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** A node before it has data; its maker starts it. */
export type GaleraSeed = {
  readonly files: ServerFiles;
  /** The node's own port. */
  readonly port: number;
  /** The port for the other nodes. */
  readonly groupPort: number;
  /** @param further how it finds the cluster, or makes it */
  readonly start: (further: readonly string[]) => Promise<void>;
  /** An orderly shutdown, which keeps what it has. */
  readonly shutdown: () => Promise<void>;
  /** Once all are up. @param further for each later start */
  readonly open: (further: readonly string[]) => Promise<GaleraNode>;
  readonly remove: () => Promise<void>;
};

/**
 * Three seconds without a sign: the others go on. The default is five; with less than this, nodes on a busy machine take each other for
 * dead, and the cluster has no quorum.
 */
const evictionOptions = [
  'evs.keepalive_period=PT0.5S',
  'evs.inactive_check_period=PT0.25S',
  'evs.suspect_timeout=PT3S',
  'evs.inactive_timeout=PT6S',
  'evs.install_timeout=PT6S',
  'pc.wait_prim=no',
];

/** Chooses directories and ports for a node. The caller must remove it. */
export async function createGaleraSeed(wish: {
  readonly number: number;
  readonly programs: GaleraPrograms;
  readonly database: string;
  readonly rootPassword: string;
}): Promise<GaleraSeed> {
  const { number, programs, database, rootPassword } = wish;
  const { server } = programs;
  let child: ChildProcess | null = null;
  let state: ReturnType<GaleraNode['state']> = 'running';
  const workspace = createWorkspace('galera', () => child?.kill('SIGKILL'));
  const files = serverFiles(workspace.path);
  const [port, groupPort, transferPort, copyPort] = await freePorts();
  const runAs = process.getuid?.() === 0 ? 'root' : null;
  const options = [
    ...evictionOptions,
    `gmcast.listen_addr=tcp://127.0.0.1:${groupPort}`,
    `ist.recv_addr=127.0.0.1:${transferPort}`,
    'gcache.size=16M',
  ];
  const own = [
    ...serverArguments(server, files, runAs),
    ...listenArguments(files, port),
    '--wsrep-on=ON',
    `--wsrep-provider=${programs.provider}`,
    `--wsrep-provider-options=${options.join(';')}`,
    '--wsrep-cluster-name=test',
    `--wsrep-node-name=db${number}`,
    '--wsrep-node-address=127.0.0.1',
    `--wsrep-sst-receive-address=127.0.0.1:${copyPort}`,
    '--wsrep-sst-method=rsync',
    '--binlog-format=ROW',
    '--innodb-autoinc-lock-mode=2',
  ];
  const start = async (further: readonly string[]) => {
    const args = [...own, ...further];
    child = await launchServer({
      program: server,
      args,
      files,
      port,
      tied: true,
      path: programs.path,
    });
  };
  const end = async (signal: NodeJS.Signals) => {
    const ending = child;
    child = null;
    if (ending === null || hasEnded(ending)) return;
    const ended = new Promise<void>((resolve) => ending.once('exit', () => resolve()));
    ending.ref();
    ending.kill(signal);
    await ended;
  };
  const root = { host: '127.0.0.1', port, user: 'root', password: rootPassword };
  return {
    files,
    port,
    groupPort,
    start,
    shutdown: () => end('SIGTERM'),
    remove: async () => {
      await end('SIGKILL');
      workspace.remove();
    },
    open: async (further) => {
      const link = await startFaultProxy({ host: root.host, port });
      const query = (sql: string, values: readonly unknown[] = []) =>
        queryOnce(root, database, sql, values);
      const status = () => readStatus(root);
      return {
        name: `db${number}`,
        host: link.host,
        port: link.port,
        link,
        state: () => state,
        log: () => (existsSync(files.log) ? readFileSync(files.log, 'utf8') : ''),
        query,
        status,
        conflicts: async () => (await status()).conflicts,
        freeze: () => {
          if (child?.pid !== undefined) freeze(child.pid);
          state = 'frozen';
        },
        thaw: () => {
          child?.kill('SIGCONT');
          state = 'running';
        },
        kill: async () => {
          state = 'killed';
          await link.listen(false);
          await end('SIGKILL');
        },
        restart: async () => {
          await start(further);
          await waitForSynced(status);
          await link.listen(true);
          state = 'running';
        },
        desync: async (on) => void (await query(`set global wsrep_desync = ${on ? 1 : 0}`)),
        isolate: async (on) => {
          const option = `gmcast.isolate=${on ? 1 : 0}`;
          await queryOnce(root, undefined, `set global wsrep_provider_options = '${option}'`);
        },
        stop: async () => {
          await link.stop();
          await end('SIGKILL');
          workspace.remove();
        },
      };
    },
  };
}

/** Resolves once the node is as good as its cluster. */
export async function waitForSynced(status: GaleraNode['status']): Promise<void> {
  await eventually('the node is synced', async () => {
    const { isPrimary, isReady, state } = await status();
    return isPrimary && isReady && state === 4;
  });
}

async function readStatus(root: Parameters<typeof queryOnce>[0]): Promise<GaleraStatus> {
  const rows = await queryOnce(root, undefined, "show global status like 'wsrep_%'");
  const values = new Map(rows.map((row) => [String(row.Variable_name), String(row.Value)]));
  const of = (name: string) => values.get(`wsrep_${name}`) ?? '';
  return {
    isPrimary: of('cluster_status') === 'Primary',
    isReady: of('ready') === 'ON',
    state: Number(of('local_state')),
    size: Number(of('cluster_size')),
    conflicts: Number(of('local_cert_failures')) + Number(of('local_bf_aborts')),
  };
}

async function freePorts(): Promise<[number, number, number, number]> {
  const ports: number[] = [];
  while (ports.length < 4) {
    const port = await freeLastingPort();
    if (!ports.includes(port)) ports.push(port);
  }
  return ports as [number, number, number, number];
}
