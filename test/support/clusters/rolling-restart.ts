// Three gateways behind a balancer, killed and started in turn under load; every request and every write is judged.
import { setTimeout as pause } from 'node:timers/promises';
import { freeLastingPort } from '../../../scripts/support/private-server.ts';
import { createDaemon, type Daemon } from '../daemon.ts';
import type { Database } from '../database/mariadb.ts';
import { eventually } from '../eventually.ts';
import { exchange, openRaw, type RawConnection, type RawReply } from '../http.ts';
import { startHaproxy } from './haproxy.ts';

/** The result of a run. `failed` and `wrong` are empty if every request was answered rightly. */
export type Rolled = {
  readonly restarts: number;
  readonly requests: number;
  /** Requests without a reply of status 200, in words. */
  readonly failed: readonly string[];
  /** Writes that are not in the table exactly once, in words. */
  readonly wrong: readonly string[];
};

type Way = {
  readonly path: '/db' | '/v1/query';
  readonly writes: boolean;
  readonly keeps: boolean;
};

const gatewayCount = 3;
/** The number of requests that must be answered between a start and the next kill. */
const requestsBetween = 100;
/** A client rests between two requests: they are to go on, not to be many. */
const restMs = 30;
const ways: readonly Way[] = (['/db', '/v1/query'] as const).flatMap((path) =>
  [true, false].flatMap((writes) => [true, false].map((keeps) => ({ path, writes, keeps }))),
);

/** Kills each of three gateways behind haproxy by its pidfile, and starts it again, `rounds` times. */
export async function rollGateways(
  database: Database,
  rounds: number,
  say: (line: string) => void = () => {},
): Promise<Rolled> {
  await database.query('create table rolled (id int not null, key (id)) engine = innodb');
  const gateways = await startGateways(database);
  const [first = 0, second = 0, third = 0] = gateways.map(portOf);
  const balancer = startHaproxy(await freeLastingPort(), [first, second, third]);
  const load = new Load(balancer.port);
  try {
    await eventually('haproxy finds a gateway', () => isReady(balancer.port));
    load.start();
    let restarts = 0;
    for (let round = 0; round < rounds; round += 1) {
      for (const gateway of gateways) {
        await load.more(requestsBetween);
        await restart(gateway);
        restarts += 1;
      }
      say(`${restarts} restarts, ${load.answered} answered, ${load.failed.length} failed`);
    }
    await load.more(requestsBetween);
    await load.stop();
    const rows = await database.query('select id, count(*) as n from rolled group by id');
    const requests = load.answered + load.failed.length;
    return { restarts, requests, failed: load.failed, wrong: load.judge(rows) };
  } finally {
    await load.stop();
    await balancer.stop();
    for (const gateway of gateways) await gateway.dispose();
  }
}

async function startGateways(database: Database): Promise<readonly Daemon[]> {
  const gateways: Daemon[] = [];
  const { name, host, port, user, password } = database;
  const reached = { database: name, host, port: String(port), user, password: password || null };
  for (let at = 0; at < gatewayCount; at += 1) {
    const listen = `127.0.0.1:${await freeLastingPort()}`;
    const gateway = createDaemon({ ...reached, listen, workers: '1', pool: '4' });
    gateways.push(gateway);
    await start(gateway);
  }
  return gateways;
}

const portOf = (gateway: Daemon) => Number(gateway.address().split(':').at(-1));

async function start(gateway: Daemon): Promise<void> {
  const { status } = await gateway.start();
  if (status !== 0) throw new Error(`exit ${status}\n${gateway.readLog()}`);
}

async function restart(gateway: Daemon): Promise<void> {
  process.kill(gateway.pid(), 'SIGTERM');
  await start(gateway);
  await eventually('it is ready', () => isReady(portOf(gateway)));
}

async function isReady(port: number): Promise<boolean> {
  const { status } = await exchange(port, 'GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  return status === 200;
}

/** Clients of the balancer, until they are stopped. */
class Load {
  readonly failed: string[] = [];
  answered = 0;
  readonly #port: number;
  readonly #reported = new Set<number>();
  #lanes: Promise<unknown> = Promise.resolve();
  #isOver = false;
  #lastId = 0;

  constructor(port: number) {
    this.#port = port;
  }

  start(): void {
    this.#lanes = Promise.all(ways.map((way) => this.#run(way)));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#lanes;
  }

  /** Resolves when this many more requests have been answered. */
  async more(count: number): Promise<void> {
    const target = this.answered + count;
    await eventually(`${count} more are answered`, () => this.answered >= target, {
      timeoutMs: 60_000,
    });
  }

  judge(rows: readonly Readonly<Record<string, unknown>>[]): readonly string[] {
    const written = new Map(rows.map(({ id, n }) => [Number(id), Number(n)]));
    const lost = [...this.#reported]
      .filter((id) => !written.has(id))
      .map((id) => `${id} is missing`);
    const twice = [...written]
      .filter(([, n]) => n > 1)
      .map(([id, n]) => `${id} is there ${n} times`);
    return [...lost, ...twice];
  }

  async #run(way: Way): Promise<void> {
    let connection: RawConnection | null = null;
    while (!this.#isOver) {
      this.#lastId += 1;
      const id = this.#lastId;
      try {
        connection ??= await openRaw(this.#port, { tellsResets: false });
        connection.send(compose(way, id));
        const reply = await connection.reply();
        this.#note(way, id, reply);
        await pause(restMs);
        if (way.keeps && reply.header('connection') !== 'close') continue;
      } catch (error) {
        this.failed.push(`${describe(way)}: ${String(error)}`);
      }
      connection?.socket.destroy();
      connection = null;
    }
    connection?.socket.destroy();
  }

  #note(way: Way, id: number, reply: RawReply): void {
    if (reply.status !== 200) {
      this.failed.push(`${describe(way)}: ${reply.status} ${reply.body}`);
      return;
    }
    this.answered += 1;
    if (way.writes) this.#reported.add(id);
  }
}

/** Reads are sent by GET to /db, everything else by POST. */
function compose({ path, writes, keeps }: Way, id: number): string {
  const sql = writes ? `insert into rolled values (${id})` : `select ${id} as n`;
  const connection = keeps ? '' : 'Connection: close\r\n';
  const head = `HTTP/1.1\r\nHost: localhost\r\n${connection}`;
  if (path === '/db' && !writes) {
    return `GET /db?${encodeURIComponent(JSON.stringify({ SQL: sql }))} ${head}\r\n`;
  }
  const body = JSON.stringify(path === '/db' ? { SQL: sql } : { sql });
  return `POST ${path} ${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function describe({ path, writes, keeps }: Way): string {
  return `${writes ? 'write' : 'read'} on ${path}, ${keeps ? 'kept' : 'fresh'} connection`;
}
