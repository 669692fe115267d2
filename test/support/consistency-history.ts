// A history of reads over servers that lag: writers, readers that hop between two gateways, tokens that are handed over. Ends with every reply
// that showed less than its request's bearer had seen.
// Must not know how a token is made.
import { setTimeout as pause } from 'node:timers/promises';
import { describeCreation, parseLedgerTable } from '../../src/shared/ledger/ledger-table.ts';
import {
  type Carried,
  type ConsistentReply,
  countersIn,
  counterTables,
  createAsker,
  mostOf,
  nothingCarried,
  olderThan,
  type ReadingWay,
  read,
  readingWays,
  write,
} from './consistency-bearer.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { createRandom, pick } from './random.ts';
import { type ReplicatedSet, startReplication } from './replication.ts';
import type { ReplicationServer } from './replication-server.ts';

/** What is to happen. */
export type ConsistencyPlan = {
  readonly seed: number;
  /** So many reads, all readers together. */
  readonly reads: number;
  /** However few they are until then. */
  readonly mostMs: number;
  readonly semiSync: boolean;
  /** False: nobody sends a token, and what is older is what there is without one. */
  readonly withTokens: boolean;
};

/** What has happened. */
export type ConsistencyHistory = {
  /** Replies that showed less than their bearers had seen. */
  readonly older: readonly string[];
  /** Replies that are in no contract. */
  readonly strange: readonly string[];
  readonly reads: number;
  /** Reads that could tell something: their bearer had seen something before. */
  readonly judged: number;
  readonly counts: ReadonlyMap<string, number>;
};

const writers = 4;
const readers = 8;
/** Writers that no gateway sees: the log is always ahead of somebody. */
const strangers = 2;
/** Of a reader's steps so many take over what a writer hands it. */
const handover = 0.1;
/** Long replies cost much. */
const longShare = 0.06;
const lagMs = { least: 30, most: 400 } as const;
const shortWays = readingWays.filter((way) => !way.startsWith('long'));
const longWays = readingWays.filter((way) => way.startsWith('long'));

/** Starts what is needed, makes the history, ends all that was started. */
export async function makeConsistencyHistory(plan: ConsistencyPlan): Promise<ConsistencyHistory> {
  const set = await startReplication({ semiSync: plan.semiSync });
  const gateways: Gateway[] = [];
  try {
    await prepare(set);
    // One knows all, the other one replica alone: whoever hops must be moved.
    for (const servers of [set.servers, [set.servers[0], set.servers[2]]]) {
      gateways.push(await startOver(set, servers as readonly ReplicationServer[]));
    }
    return await new Play(plan, set, gateways).run();
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await set.stop();
  }
}

async function prepare(set: ReplicatedSet): Promise<void> {
  const primary = set.primary();
  const keys = describeCreation(parseLedgerTable('request_keys', set.target.name));
  await primary.query(counterTables);
  await primary.query(keys);
  const rows = Array.from({ length: writers + strangers }, (_, index) => `(${index + 1}, 0)`);
  await primary.query(`insert into counters values ${rows.join()}`);
  await set.waitForCatchUp();
}

function startOver(set: ReplicatedSet, servers: readonly ReplicationServer[]): Promise<Gateway> {
  const host = servers.map((server) => `${server.host}:${server.port}`).join(', ');
  return startGateway({
    database: { ...set.target, host },
    settings: { pool: 8, reads: 'replicas', max_lag: '300ms', idempotency_table: 'request_keys' },
  });
}

class Play {
  readonly #plan: ConsistencyPlan;
  readonly #set: ReplicatedSet;
  readonly #gateways: readonly Gateway[];
  readonly #random: () => number;
  readonly #handed = new Map<number, Carried>();
  readonly #older: string[] = [];
  readonly #strange: string[] = [];
  readonly #counts = new Map<string, number>();
  #reads = 0;
  #judged = 0;
  #isOver = false;

  constructor(plan: ConsistencyPlan, set: ReplicatedSet, gateways: readonly Gateway[]) {
    this.#plan = plan;
    this.#set = set;
    this.#gateways = gateways;
    this.#random = createRandom(plan.seed);
  }

  async run(): Promise<ConsistencyHistory> {
    const many = (count: number, work: (id: number) => Promise<void>) =>
      Array.from({ length: count }, (_, index) => work(index + 1));
    const timer = setTimeout(() => this.#end(), this.#plan.mostMs);
    await Promise.all([
      ...many(writers, (id) => this.#writer(id)),
      ...many(readers, () => this.#reader()),
      ...many(strangers, (id) => this.#stranger(writers + id)),
      ...this.#set.replicas().map((replica, at) => this.#lagger(replica, at)),
    ]);
    clearTimeout(timer);
    return {
      older: this.#older,
      strange: this.#strange,
      reads: this.#reads,
      judged: this.#judged,
      counts: this.#counts,
    };
  }

  #end(): void {
    this.#isOver = true;
  }

  get #url(): string {
    return pick(this.#random, this.#gateways).url;
  }

  /** Writes, reads what it wrote, hands over what it has seen. */
  async #writer(id: number): Promise<void> {
    const asker = createAsker();
    let carried = nothingCarried;
    for (let n = 1; !this.#isOver; n += 1) {
      const token = this.#plan.withTokens ? carried.token : null;
      const key = `${id}-${n}`;
      const reply = await write(asker, this.#url, id, { token, random: this.#random, key });
      if (reply.status !== 200) throw new Error(`a write: ${reply.status} ${reply.text}`);
      const floor = mostOf(carried.floor, new Map([[id, n]]));
      carried = { token: reply.token ?? carried.token, floor };
      this.#note('write', reply);
      carried = await this.#readOnce(asker, carried);
      this.#handed.set(id, carried);
      await pause(2);
    }
    asker.end();
  }

  async #reader(): Promise<void> {
    const asker = createAsker();
    let carried = nothingCarried;
    while (!this.#isOver) {
      const other = this.#handed.get(1 + Math.floor(this.#random() * writers));
      if (other !== undefined && this.#random() < handover) carried = other;
      carried = await this.#readOnce(asker, carried);
    }
    asker.end();
  }

  async #stranger(id: number): Promise<void> {
    const connection = await this.#set.primary().connect();
    while (!this.#isOver) {
      await connection.query(`update counters set n = n + 1 where id = ${id}`);
      await pause(1);
    }
    await connection.end();
  }

  /** Each replica lags in its own way, and never for as long as another. */
  async #lagger(replica: ReplicationServer, at: number): Promise<void> {
    while (!this.#isOver) {
      await this.#set.lag(replica, at === 0 ? 'stopped' : 'locked');
      await pause(lagMs.least + this.#random() * (lagMs.most - lagMs.least));
      await this.#set.lag(replica, null);
      await pause(this.#random() * lagMs.most);
    }
  }

  async #readOnce(asker: ReturnType<typeof createAsker>, before: Carried): Promise<Carried> {
    const isLong = this.#random() < longShare;
    const way: ReadingWay = pick(this.#random, isLong ? longWays : shortWays);
    const token = this.#plan.withTokens ? before.token : null;
    const reply = await read(asker, this.#url, way, token);
    this.#reads += 1;
    if (this.#reads >= this.#plan.reads) this.#end();
    this.#note(way, reply);
    if (reply.status !== 200) {
      this.#strange.push(`${way}: ${reply.status} ${reply.text.slice(0, 200)}`);
      return before;
    }
    const seen = countersIn(reply.text);
    if (before.floor.size > 0) this.#judged += 1;
    const older = olderThan(before.floor, seen);
    if (older.length > 0 && !reply.isUnverified) {
      const text = `${way}: ${older.join(', ')}; sent ${explain(token)}, told ${explain(reply.token)}`;
      this.#older.push(text);
    }
    const floor = reply.isUnverified ? before.floor : mostOf(before.floor, seen);
    return { token: reply.token ?? before.token, floor };
  }

  #note(way: string, { status, token, isUnverified }: ConsistentReply): void {
    const what = `${status}${token === null ? ' without token' : ''}${isUnverified ? ' unverified' : ''}`;
    for (const one of [way, what]) this.#counts.set(one, (this.#counts.get(one) ?? 0) + 1);
  }
}

function explain(token: string | null): string {
  return Buffer.from(token?.split('.')[1] ?? '', 'base64url').toString();
}
