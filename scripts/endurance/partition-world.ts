// Three servers that replicate, a gateway before them, and the truth that an operator has: which server is the primary, and since when.
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../src/shared/database/idempotency-table.ts';
import { exitCodes } from '../../src/shared/process/exit-codes.ts';
import { type Ask, createAsk } from '../../test/support/ask.ts';
import {
  holdsPosition,
  type ReplicatedSet,
  startReplication,
} from '../../test/support/clusters/replication.ts';
import type { ReplicationServer } from '../../test/support/clusters/replication-server.ts';
import { createDaemon, type Daemon } from '../../test/support/daemon.ts';
import { eventually } from '../../test/support/eventually.ts';
import { writtenTable } from '../../test/support/histories/failover-writes.ts';
import { gone, signal } from '../../test/support/processes.ts';
import { readMetric } from '../../test/support/scrape.ts';
import { freeLastingPort } from '../support/private-server.ts';
import type { Reign, WrittenRow } from './partition-judge.ts';

const workers = 2;

/** Servers and gateway. The caller must stop them. */
export class PartitionWorld {
  readonly set: ReplicatedSet;
  readonly gateway: Ask;
  readonly reigns: Reign[] = [];
  readonly strays: WrittenRow[] = [];
  readonly #daemon: Daemon;
  /** The position before the first row: a server that is rebuilt begins there. */
  readonly #basis: string;

  constructor(set: ReplicatedSet, daemon: Daemon, listen: string, basis: string) {
    this.set = set;
    this.#daemon = daemon;
    this.#basis = basis;
    this.gateway = createAsk(`http://${listen}`);
    this.beginReign(set.primary());
  }

  beginReign({ serverId }: ReplicationServer): void {
    this.reigns.push({ serverId, fromMs: Date.now(), toMs: null });
  }

  endReign(): void {
    const last = this.reigns.pop();
    if (last !== undefined) this.reigns.push({ ...last, toMs: Date.now() });
  }

  workers(): readonly number[] {
    return this.#daemon.workers();
  }

  log(): string {
    return this.#daemon.readLog();
  }

  /** Starts the gateway at its address. If all workers of a start are killed, the gateway gives up, and the operator starts it again. */
  async startGateway(triesLeft = 3): Promise<void> {
    const { status, stderr } = await this.#daemon.start();
    if (status === 0) return;
    const isGivenUp = status === exitCodes.unavailable && triesLeft > 1;
    if (!isGivenUp) throw new Error(`dbhttpd: exit ${status}\n${stderr}\n${this.log()}`);
    await this.startGateway(triesLeft - 1);
  }

  /** Ends the gateway: SIGTERM, and it drains, or SIGKILL to all of its processes. */
  async endGateway(how: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const pids = [this.#daemon.pid(), ...this.workers()];
    for (const pid of how === 'SIGKILL' ? pids : pids.slice(0, 1)) signal(pid, how);
    for (const pid of pids) await gone(pid, 45_000);
  }

  /** Resolves to whether every worker uses the true primary and both replicas. */
  async isInPlace(): Promise<boolean> {
    const { host, port } = this.set.primary();
    const [primary, replicas] = await Promise.all([
      readMetric(this.gateway, 'dbhttpd_backend_role', {
        backend: `${host}:${port}`,
        role: 'primary',
      }),
      readMetric(this.gateway, 'dbhttpd_backend_role', { role: 'replica' }),
    ]);
    return primary === workers && replicas === 2 * workers;
  }

  /** The roles and their reasons, from /readyz. */
  async describeReadiness(): Promise<string> {
    const { text } = await this.gateway.get('/readyz');
    return text;
  }

  /** The operator's last resort: `dbhttpd --primary`. */
  async namePrimary(): Promise<void> {
    const { host, port } = this.set.primary();
    const { status, stderr } = await this.#daemon.run(['--primary', `${host}:${port}`]);
    if (status !== 0) throw new Error(`--primary: exit ${status}\n${stderr}`);
  }

  /** The number of probes of a server, since the gateway had sent this many statements. */
  looksSince({ link }: ReplicationServer, sent: number): number {
    return link.statements.slice(sent).filter((text) => /@@\S*\bread_only/i.test(text)).length;
  }

  /** All rows of a server. */
  async rowsOf(server: ReplicationServer): Promise<readonly WrittenRow[]> {
    const rows = await server.query('select id, server_id, at_ms from written');
    return rows.map((row) => ({
      id: Number(row.id),
      serverId: Number(row.server_id),
      atMs: Number(row.at_ms),
    }));
  }

  /** Keys on the primary whose rows were committed before their replies were stored, as text. */
  async keysWithoutReply(): Promise<readonly string[]> {
    const rows = await this.set
      .primary()
      .query('select hex(id) as id, created from request_keys where reply is null');
    return rows.map(({ id, created }) => `key ${String(id)} of ${String(created)} has no reply`);
  }

  /**
   * Makes a former primary follow the primary again. If it holds rows that the primary lacks, it is rebuilt: the rows are recorded, and it
   * gets all rows from the primary while no client reaches it.
   */
  async rejoin(server: ReplicationServer): Promise<'repointed' | 'rebuilt'> {
    const primary = this.set.primary();
    await server.setReadOnly(true);
    const position = await server.position();
    if (await holdsPosition(primary, position)) {
      await this.set.follow(server);
      return 'repointed';
    }
    const there = new Set((await this.rowsOf(primary)).map(keyOf));
    this.strays.push(...(await this.rowsOf(server)).filter((row) => !there.has(keyOf(row))));
    await server.link.listen(false);
    server.link.cutAll();
    await server.query(`stop slave; reset slave all; set sql_log_bin = 0;
      truncate table written; truncate table request_keys; reset master;
      set global gtid_binlog_state = '${this.#basis}'; set global gtid_slave_pos = '${this.#basis}'`);
    await this.set.follow(server);
    await this.set.waitForCatchUp([server]);
    await server.link.listen(true);
    return 'rebuilt';
  }

  async stop(): Promise<void> {
    await this.#daemon.dispose();
    await this.set.stop();
  }
}

/** A name for a row, the same on two servers. If the first row of a key was lost, the key may have another one. */
function keyOf({ id, serverId, atMs }: WrittenRow): string {
  return `${id} ${serverId} ${atMs}`;
}

/** Starts servers and gateway. */
export async function openPartitionWorld(): Promise<PartitionWorld> {
  // A write is shown only when a replica has it, however long that takes: no promotion of the replica that is ahead loses one.
  const args = ['--rpl-semi-sync-master-timeout=120000'];
  const set = await startReplication({ semiSync: true, args });
  try {
    const [first] = set.servers;
    if (first === undefined) throw new Error('a set has a server');
    // Defaults sign each row: with a trigger the gateway could not prove that a lost batch was undone, and would not run it again.
    await first.query(`grant slave monitor on *.* to app@127.0.0.1;
      ${writtenTable};
      alter table written add column server_id int default (@@server_id),
        add column at_ms bigint default (floor(unix_timestamp(now(6)) * 1000));
      ${describeCreation(parseIdempotencyTable('request_keys', set.target.name))}`);
    await set.waitForCatchUp();
    const listen = `127.0.0.1:${await freeLastingPort()}`;
    const { name: database, ...account } = set.target;
    const daemon = createDaemon({
      database,
      host: account.host,
      user: account.user,
      password: account.password,
      port: null,
      listen,
      workers: String(workers),
      pool: '6',
      idempotency_table: 'request_keys',
      statement_timeout: '10s',
      failover_wait: '2s',
    });
    const world = new PartitionWorld(set, daemon, listen, await first.position());
    try {
      await world.startGateway();
      await eventually('the gateway knows the primary', () => world.isInPlace());
      return world;
    } catch (error) {
      await daemon.dispose();
      throw error;
    }
  } catch (error) {
    await set.stop();
    throw error;
  }
}
