// Twelve histories after which a gateway must write to the right server or to none, each with fresh real servers.
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ReplicatedSet, startReplication } from '../clusters/replication.ts';
import type { ReplicationServer } from '../clusters/replication-server.ts';
import { startBefore } from '../clusters/several-servers.ts';
import { runCommand } from '../daemon.ts';
import { eventually } from '../eventually.ts';
import type { Gateway } from '../gateway.ts';
import { createWorkspace } from '../workspace.ts';
import { playOppositeHalves } from './opposite-halves.ts';

/** The server that a write goes to: `db1` … or the code of its refusal. */
export type CaseStep = {
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  /** The reported reason why writes are rejected. */
  readonly evidence: string;
};

export type PrimaryCase = {
  readonly number: number;
  readonly promise: string;
  readonly play: () => Promise<readonly CaseStep[]>;
};

/** Servers A (the first primary), B and C, and gateways before them. */
class Play {
  readonly steps: CaseStep[] = [];
  readonly a: ReplicationServer;
  readonly b: ReplicationServer;
  readonly c: ReplicationServer;
  readonly set: ReplicatedSet;
  readonly #workspace = createWorkspace('primary', () => {});
  #gateway: Gateway | null = null;
  #last = 0;
  readonly #cut = new Set<ReplicationServer>();

  constructor(set: ReplicatedSet) {
    this.set = set;
    [this.a, this.b, this.c] = set.servers as [
      ReplicationServer,
      ReplicationServer,
      ReplicationServer,
    ];
  }

  get gateway(): Gateway {
    if (this.#gateway === null) throw new Error('no gateway runs');
    return this.#gateway;
  }

  /** Starts a gateway with the memory of this name. */
  async start(memory = 'usual'): Promise<void> {
    this.#gateway = await startBefore(this.set, {
      workers: 2,
      failover_wait: '2s',
      state_dir: this.#pathOf(memory),
    });
  }

  async stop(): Promise<void> {
    await this.#gateway?.stop();
    this.#gateway = null;
  }

  async restart(memory = 'usual'): Promise<void> {
    await this.stop();
    await this.start(memory);
  }

  /** Keeps a copy of the memory under another name. */
  keepMemory(name: string): void {
    mkdirSync(this.#pathOf(name), { mode: 0o700 });
    copyFileSync(
      join(this.#pathOf('usual'), 'world.primary'),
      join(this.#pathOf(name), 'world.primary'),
    );
  }

  #pathOf(memory: string): string {
    return join(this.#workspace.path, memory);
  }

  async promote(server: ReplicationServer): Promise<void> {
    await server.query('stop slave; reset slave all; set global read_only = 0');
  }

  /** No gateway reaches it, and the other servers do. */
  async cut(server: ReplicationServer): Promise<void> {
    this.#cut.add(server);
    await server.link.listen(false);
    server.link.cutAll();
  }

  /** Writes on a server, around the gateway. */
  async write(server: ReplicationServer): Promise<void> {
    this.#last += 1;
    await server.query('insert into written values (?)', [this.#last]);
  }

  /** Resolves when the gateway has probed each reachable server often enough to use one that had been gone. */
  async settle(): Promise<void> {
    const looks = ({ link }: ReplicationServer) =>
      link.statements.filter((statement) => /@@\S*\bread_only/i.test(statement)).length;
    const before = this.set.servers.map(looks);
    // Enough for two workers.
    const enough = 10;
    const isReached = (server: ReplicationServer) =>
      server.state() === 'running' && !this.#cut.has(server);
    await eventually('all are looked at', () =>
      this.set.servers.every(
        (server, at) => !isReached(server) || looks(server) - (before[at] ?? 0) >= enough,
      ),
    );
  }

  /** Writes through the gateway, and records the server that got the write. */
  async expect(what: string, expected: string): Promise<void> {
    await this.settle();
    this.#last += 1;
    const id = this.#last;
    const sql = 'insert into written values (?)';
    const reply = await this.gateway.post('/v1/query', { sql, params: [id], timeout_ms: 5_000 });
    const holders: string[] = [];
    for (const server of this.set.servers) {
      if (server.state() !== 'running') continue;
      const rows = await server.query('select 1 from written where id = ?', [id]);
      const follows = await server.query('show slave status');
      if (rows.length > 0 && follows.length === 0) holders.push(server.name);
    }
    const found = reply.status === 200 ? holders.join('+') : reply.json<{ code: string }>().code;
    const evidence = reply.status === 200 ? '' : ` (${await this.#whyNone()})`;
    this.steps.push({ what, expected, found, evidence });
  }

  async #whyNone(): Promise<string> {
    type Reported = { no_primary?: { reason: string; evidence: string } };
    const ready = (await this.gateway.get('/readyz')).json<{
      sections?: Record<string, Reported>;
    }>();
    const none = ready.sections?.[this.gateway.section]?.no_primary;
    return none === undefined ? 'no reason is given' : `${none.reason}: ${none.evidence}`;
  }

  async end(): Promise<void> {
    await this.stop();
    await this.set.stop();
    this.#workspace.remove();
  }
}

function playWith(history: (play: Play) => Promise<void>): () => Promise<readonly CaseStep[]> {
  return async () => {
    const set = await startReplication();
    const play = new Play(set);
    try {
      await play.a.query(`create table written (id int primary key) engine = innodb;
        grant slave monitor on *.* to app@127.0.0.1`);
      await set.waitForCatchUp();
      await history(play);
      return play.steps;
    } finally {
      await play.end();
    }
  };
}

/** A is gone, B is promoted, and C follows B. */
async function failOver(play: Play): Promise<void> {
  await play.a.kill();
  await play.promote(play.b);
  await play.set.follow(play.c, play.b);
}

/** The same; A returns as it was configured; and no gateway reaches B. */
async function hideSuccessor(play: Play): Promise<void> {
  await failOver(play);
  await play.settle();
  await play.a.restart();
  await play.cut(play.b);
}

async function returnBesideIdle(play: Play): Promise<void> {
  await play.start();
  await play.a.kill();
  await play.promote(play.b);
  await play.settle();
  await play.a.restart();
  await play.settle();
  await play.restart('new');
  await play.expect('a gateway on a new host', 'TWO_PRIMARIES');
  await play.restart();
  await play.expect('the gateway after a restart', 'db2');
}

async function respawn(play: Play): Promise<void> {
  await play.start();
  await hideSuccessor(play);
  const [worker = 0] = play.gateway.workers();
  process.kill(worker, 'SIGKILL');
  await eventually('another worker serves', () => {
    const workers = play.gateway.workers();
    return workers.length === 2 && !workers.includes(worker);
  });
  await play.expect('one worker is new', 'NO_PRIMARY');
}

async function startWithOldMemory(play: Play): Promise<void> {
  await play.start();
  await play.expect('before the failover', 'db1');
  play.keepMemory('old');
  await hideSuccessor(play);
  await play.restart('old');
  await play.expect('it was stopped before the failover', 'NO_PRIMARY');
}

async function startOnNewHost(play: Play): Promise<void> {
  await play.start();
  await failOver(play);
  await play.settle();
  await play.c.query('stop slave sql_thread');
  await play.write(play.b);
  await play.a.restart();
  await play.cut(play.b);
  await play.restart('new');
  await play.expect('the replica has nothing of the successor', 'NO_PRIMARY');
}

async function loseWrites(play: Play): Promise<void> {
  const { a, b, c } = play;
  await play.start();
  await b.query('stop slave io_thread');
  await play.write(a);
  await play.set.waitForCatchUp([c]);
  await play.settle();
  await a.kill();
  await play.promote(b);
  await play.expect('the third holds more, and dangles', 'db2');
  await a.restart();
  // The third is connected to it: it could as well be the operator's choice, which no gateway has seen.
  await play.expect('the former primary is back, and the third with it', 'NO_PRIMARY');
  await play.set.follow(c, b);
  await play.expect('the third follows the successor', 'db2');
}

async function rebootSuccessor(play: Play): Promise<void> {
  const { a, b } = play;
  await play.start();
  await failOver(play);
  await play.settle();
  await play.write(b);
  await b.kill();
  await b.restart();
  await play.c.kill();
  await a.restart();
  await play.expect('the successor is read-only', 'NO_PRIMARY');
}

async function failOverTwice(play: Play): Promise<void> {
  await play.start();
  await play.a.kill();
  await play.promote(play.b);
  await play.expect('the first failover', 'db2');
  await play.b.kill();
  await play.promote(play.c);
  await play.expect('the second one, whose replica never followed the first successor', 'db3');
}

/** Switches from one to the other. All others follow the new primary then. */
async function switchOver(play: Play, from: ReplicationServer, to: ReplicationServer) {
  await from.setReadOnly(true);
  await play.set.waitForCatchUp();
  await play.set.promote(to);
  await play.set.follow(from);
}

async function switchThereAndBack(play: Play): Promise<void> {
  const { a, b } = play;
  await play.start();
  await switchOver(play, a, b);
  await play.expect('there', 'db2');
  await play.stop();
  await switchOver(play, b, a);
  await play.start();
  await play.expect('back, while no gateway ran', 'db1');
  await play.stop();
  await switchOver(play, a, b);
  await play.start();
  await play.expect('there once more, while none ran', 'db2');
}

async function leaveErrantRows(play: Play): Promise<void> {
  const { b, c } = play;
  await play.start();
  await play.write(c);
  await play.expect('on a direct replica', 'db1');
  await play.restart('new');
  await play.expect('the same on a new host', 'db1');
  await c.query('set global gtid_strict_mode = 0');
  await play.set.follow(c, b);
  await play.write(c);
  await play.expect('on a replica behind another one', 'db1');
  await play.restart('newer');
  await play.expect('the same on a new host', 'db1');
}

async function breakChain(play: Play): Promise<void> {
  await play.start();
  await play.set.follow(play.c, play.b);
  await play.settle();
  await play.b.kill();
  await play.expect('with its memory', 'db1');
  await play.restart('new');
  await play.expect('on a new host', 'db1');
}

/** A comes back from a backup, without its last write, which its replicas have. */
async function loseLastWrite({ a }: Play, position: string): Promise<void> {
  await a.kill();
  await a.restart();
  await a.link.listen(false);
  await a.query(`set sql_log_bin = 0; delete from written order by id desc limit 1;
    set sql_log_bin = 1; reset master; set global gtid_binlog_state = '${position}'`);
}

async function restore(play: Play): Promise<void> {
  const { a, b, c } = play;
  await play.start();
  await play.expect('before', 'db1');
  await play.set.waitForCatchUp();
  for (const isRenamed of [false, true]) {
    const position = await a.position();
    await play.write(a);
    await play.settle();
    for (const replica of [b, c]) await replica.query('stop slave');
    await loseLastWrite(play, position);
    if (isRenamed) await a.query('set global server_id = 99');
    await a.link.listen(true);
    if (isRenamed) await play.expect('under another identity', 'NO_PRIMARY');
    else await play.expect('under the same identity', 'db1');
  }
  const address = `${a.host}:${a.port}`;
  const target = ['-c', play.gateway.configPath, '-s', play.gateway.section];
  const { status, stdout, stderr } = await runCommand(['--primary', address, ...target]);
  if (status !== 0) throw new Error(`--primary: ${status} ${stdout} ${stderr}`);
  await play.expect('after --primary', 'db1');
}

async function splitWorkers(): Promise<readonly CaseStep[]> {
  const set = await startReplication();
  const workspace = createWorkspace('halves', () => {});
  try {
    await set.servers[0]?.query('grant slave monitor on *.* to app@127.0.0.1');
    await set.waitForCatchUp();
    return await playOppositeHalves(set, (name) => join(workspace.path, name));
  } finally {
    await set.stop();
    workspace.remove();
  }
}

/** In the order of the experiment that found them. */
export const primaryCases: readonly PrimaryCase[] = (
  [
    ['a former primary beside an idle successor gets no write', playWith(returnBesideIdle)],
    ['nor from a worker that cannot reach the successor and is new', playWith(respawn)],
    ['nor from a gateway that was stopped before the failover', playWith(startWithOldMemory)],
    ['nor from one on a new host, if a replica is connected elsewhere', playWith(startOnNewHost)],
    ['a lossy failover is followed', playWith(loseWrites)],
    ['a former primary beside a read-only successor gets no write', playWith(rebootSuccessor)],
    ['a double failover is followed', playWith(failOverTwice)],
    ['a switchover there and back is followed, seen or not', playWith(switchThereAndBack)],
    ['an errant row stops no write', playWith(leaveErrantRows)],
    ['a chain whose middle is dead stops no write', playWith(breakChain)],
    ['a restored primary is known by its identity', playWith(restore)],
    ['two workers that see opposite halves write to one server', splitWorkers],
  ] as const
).map(([promise, play], at) => ({ number: at + 1, promise, play }));
