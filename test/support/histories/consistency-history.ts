// A history of reads over servers that lag: writers, readers that hop between two gateways, tokens that are handed over. Ends with every reply
// that showed less than its request's bearer had seen.
// Must not know how a token is made.
import { setTimeout as pause } from 'node:timers/promises';
import { describeCreation, parseLedgerTable } from '../../../src/shared/ledger/ledger-table.ts';
import { type ReplicatedSet, startReplication } from '../clusters/replication.ts';
import type { ReplicationServer } from '../clusters/replication-server.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import { createRandom, pick } from '../random.ts';
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

/** What is to happen. */
export type ConsistencyPlan = {
  readonly seed: number;
  /** So many reads with tokens, all readers together; before them a tenth as many without. */
  readonly reads: number;
  /** However few they are until then, if they say enough. */
  readonly mostMs: number;
  /** Less says nothing: on a slow machine they go on until there is as much. */
  readonly least: ConsistencyLeast;
  readonly semiSync: boolean;
};

/** Replies that were older, of those without tokens; reads that moved between servers, of those with. */
export type ConsistencyLeast = {
  readonly older: number;
  readonly toReplica: number;
  readonly toPrimary: number;
};

/** What has happened while everybody sent tokens, or nobody did. */
export type ConsistencyHistory = {
  /** Replies that showed less than their bearers had seen. */
  readonly older: readonly string[];
  /** Replies that are in no contract. */
  readonly strange: readonly string[];
  readonly reads: number;
  /** Reads that could tell something: their bearer had seen something before. */
  readonly judged: number;
  /** Of those, the ones by another replica than the one that had been seen, and the ones by the primary after a replica. */
  readonly moved: { readonly toReplica: number; readonly toPrimary: number };
  readonly counts: ReadonlyMap<string, number>;
};

const writers = 4;
const readers = 12;
/** Writers that no gateway sees: the log is always ahead of somebody. */
const strangers = 2;
/** Whoever has seen the primary is answered there from then on: a reader begins anew after so many reads there, and elsewhere, on average. */
const readsOfLife = { onPrimary: 1.5, elsewhere: 12 } as const;
/** Of readers so many begin with what somebody hands them. */
const handover = 0.2;
/** Of a reader's reads so many may be the primary's. */
const plainShare = 0.2;
/** Long replies cost much. */
const longShare = 0.06;
const lagMs = { least: 20, most: 250, between: 1_200 } as const;
const declaredWays: readonly ReadingWay[] = ['/db READ_ONLY', '/v1/query read_only', 'QUERY'];
const longDeclaredWays: readonly ReadingWay[] = ['long /db READ_ONLY'];
const plainWays = readingWays.filter(
  (way) => ![...declaredWays, ...longDeclaredWays].includes(way) && !way.startsWith('long'),
);
const longPlainWays: readonly ReadingWay[] = ['long /v1/query'];

const shareWithout = 0.1;
const longestShareWithout = 0.2;

/** Starts what is needed, makes the histories, ends all that was started. */
export async function makeConsistencyHistories(
  plan: ConsistencyPlan,
): Promise<{ readonly without: ConsistencyHistory; readonly withTokens: ConsistencyHistory }> {
  const set = await startReplication({ semiSync: plan.semiSync });
  const gateways: Gateway[] = [];
  try {
    await prepare(set);
    // Each knows one replica alone: whoever hops is moved to another server.
    for (const replica of set.replicas()) {
      gateways.push(await startOver(set, [set.primary(), replica]));
    }
    const { seed, reads, mostMs, least } = plan;
    const short = { reads: reads * shareWithout, mostMs: mostMs * longestShareWithout };
    const without = await new Play(
      { seed, ...short, sendsTokens: false, isEnough: ({ older }) => older.length >= least.older },
      set,
      gateways,
    ).run();
    const isEnough = ({ moved }: ConsistencyHistory) =>
      moved.toReplica >= least.toReplica && moved.toPrimary >= least.toPrimary;
    const play = new Play({ seed, reads, mostMs, sendsTokens: true, isEnough }, set, gateways);
    return { without, withTokens: await play.run() };
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

type PlayPlan = Pick<ConsistencyPlan, 'seed' | 'reads' | 'mostMs'> & {
  readonly sendsTokens: boolean;
  /** Whether it may end when its time is over. */
  readonly isEnough: (history: ConsistencyHistory) => boolean;
};

class Play {
  readonly #plan: PlayPlan;
  readonly #set: ReplicatedSet;
  readonly #gateways: readonly Gateway[];
  readonly #random: () => number;
  readonly #handed = new Map<number, Carried>();
  readonly #older: string[] = [];
  readonly #strange: string[] = [];
  readonly #counts = new Map<string, number>();
  #reads = 0;
  #judged = 0;
  #toReplica = 0;
  #toPrimary = 0;
  #isLate = false;
  #isOver = false;

  constructor(plan: PlayPlan, set: ReplicatedSet, gateways: readonly Gateway[]) {
    this.#plan = plan;
    this.#set = set;
    this.#gateways = gateways;
    this.#random = createRandom(plan.seed);
  }

  async run(): Promise<ConsistencyHistory> {
    const many = (count: number, work: (id: number) => Promise<void>) =>
      Array.from({ length: count }, (_, index) => work(index + 1));
    const timer = setTimeout(() => {
      this.#isLate = true;
    }, this.#plan.mostMs);
    await Promise.all([
      ...many(writers, (id) => this.#writer(id)),
      ...many(readers, () => this.#reader()),
      ...many(strangers, (id) => this.#stranger(writers + id)),
      ...this.#set.replicas().map((replica, at) => this.#lagger(replica, at)),
    ]);
    clearTimeout(timer);
    return this.#history();
  }

  #history(): ConsistencyHistory {
    return {
      older: this.#older,
      strange: this.#strange,
      reads: this.#reads,
      judged: this.#judged,
      moved: { toReplica: this.#toReplica, toPrimary: this.#toPrimary },
      counts: this.#counts,
    };
  }

  get #url(): string {
    return pick(this.#random, this.#gateways).url;
  }

  /** Writes, reads what it wrote, hands over what it has seen. */
  async #writer(id: number): Promise<void> {
    const asker = createAsker();
    let carried = nothingCarried;
    for (let n = 1 + (await this.#lastOf(id)); !this.#isOver; n += 1) {
      const token = this.#plan.sendsTokens ? carried.token : null;
      const key = `${this.#plan.sendsTokens}-${id}-${n}`;
      const reply = await write(asker, this.#url, id, { token, random: this.#random, key });
      if (reply.status !== 200) throw new Error(`a write: ${reply.status} ${reply.text}`);
      const floor = mostOf(carried.floor, new Map([[id, n]]));
      carried = { token: reply.token ?? carried.token, floor, replicaOf: null };
      this.#note('write', reply);
      carried = await this.#readOnce(asker, carried);
      this.#handed.set(id, carried);
      await pause(2);
    }
    asker.end();
  }

  async #lastOf(id: number): Promise<number> {
    const rows = await this.#set.primary().query('select n from counters where id = ?', [id]);
    return Number(rows[0]?.n);
  }

  async #reader(): Promise<void> {
    const asker = createAsker();
    let carried = nothingCarried;
    while (!this.#isOver) {
      carried = await this.#readOnce(asker, carried);
      if (this.#random() < handover) this.#handed.set(0, carried);
      const { onPrimary, elsewhere } = readsOfLife;
      const reads = carried.replicaOf === null ? onPrimary : elsewhere;
      if (this.#random() < 1 / reads) carried = this.#begin();
    }
    asker.end();
  }

  #begin(): Carried {
    const giver = Math.floor(this.#random() * (writers + 1));
    return (this.#random() < handover ? this.#handed.get(giver) : null) ?? nothingCarried;
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
      await pause(this.#random() * lagMs.between);
    }
  }

  async #readOnce(asker: ReturnType<typeof createAsker>, before: Carried): Promise<Carried> {
    const isLong = this.#random() < longShare;
    const isPlain = this.#random() < plainShare;
    const [short, long] = isPlain ? [plainWays, longPlainWays] : [declaredWays, longDeclaredWays];
    const way = pick(this.#random, isLong ? long : short);
    const token = this.#plan.sendsTokens ? before.token : null;
    const url = this.#url;
    const reply = await read(asker, url, way, token);
    this.#reads += 1;
    if (this.#reads >= this.#plan.reads) this.#isOver = true;
    if (this.#isLate && this.#plan.isEnough(this.#history())) this.#isOver = true;
    this.#note(way, reply);
    if (reply.status !== 200) {
      this.#strange.push(`${way}: ${reply.status} ${reply.text.slice(0, 200)}`);
      return before;
    }
    const seen = countersIn(reply.text);
    if (before.floor.size > 0) this.#judged += 1;
    const { replicaOf } = before;
    if (replicaOf !== null && isPlain) this.#toPrimary += 1;
    if (replicaOf !== null && replicaOf !== url && !isPlain) this.#toReplica += 1;
    const older = olderThan(before.floor, seen);
    if (older.length > 0 && !reply.isUnverified) {
      const text = `${way}: ${older.join(', ')}; sent ${explain(token)}, told ${explain(reply.token)}`;
      this.#older.push(text);
    }
    const floor = reply.isUnverified ? before.floor : mostOf(before.floor, seen);
    const isOfReplica = !isPlain && (before.token === null || replicaOf !== null);
    return { token: reply.token ?? before.token, floor, replicaOf: isOfReplica ? url : null };
  }

  #note(way: string, { status, token, isUnverified }: ConsistentReply): void {
    const what = `${status}${token === null ? ' without token' : ''}${isUnverified ? ' unverified' : ''}`;
    for (const one of [way, what]) this.#counts.set(one, (this.#counts.get(one) ?? 0) + 1);
  }
}

function explain(token: string | null): string {
  return Buffer.from(token?.split('.')[1] ?? '', 'base64url').toString();
}
