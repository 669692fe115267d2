// A history of reads over servers that lag: writers, readers that hop between two gateways, tokens that are handed over. Ends with every reply
// that showed less than its request's bearer had seen.
import { setTimeout as pause } from 'node:timers/promises';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { type ReplicatedSet, startReplication } from '../clusters/replication.ts';
import type { ReplicationServer } from '../clusters/replication-server.ts';
import { readerOf } from '../clusters/several-servers.ts';
import { eventually } from '../eventually.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import { pick } from '../random.ts';
import {
  type Asker,
  type Carried,
  type ConsistentReply,
  countersIn,
  counterTables,
  createAsker,
  maxOf,
  nothingCarried,
  olderThan,
  type ReadingWay,
  read,
  readingWays,
  write,
} from './consistency-bearer.ts';
import { type Actor, type Crew, makeHistory, several } from './crew.ts';

/** The plan of a history. */
export type ConsistencyPlan = {
  readonly seed: number;
  /** The number of reads with tokens, of all readers together. A tenth as many without tokens come before them. */
  readonly reads: number;
  /** However few they are until then. */
  readonly maxMs: number;
  readonly semiSync: boolean;
};

/** The events while all readers sent tokens, or none did. */
export type ConsistencyHistory = {
  /** Replies that showed less than their bearers had seen. */
  readonly older: readonly string[];
  /** Replies that are in no contract. */
  readonly strange: readonly string[];
  readonly reads: number;
  /** Reads that could show something: their bearer had seen something before. */
  readonly judged: number;
  /** Those answered by another replica than the one that had been seen, and those answered by the primary after a replica. */
  readonly moved: { readonly toReplica: number; readonly toPrimary: number };
  readonly counts: ReadonlyMap<string, number>;
};

const writers = 3;
const readers = 8;
/** Writers that no gateway sees: the log is always ahead of a replica. */
const strangers = 1;
/**
 * If a reader has seen the primary, the primary answers it from then on. On average it starts again after this many reads there, and
 * elsewhere.
 */
const readsOfLife = { onPrimary: 1.5, elsewhere: 12 } as const;
/** The share of readers that begin with a token from another reader. */
const handover = 0.2;
/** The share of a reader's reads that may be the primary's. */
const plainShare = 0.2;
/** Long replies cost much. */
const longShare = 0.06;
/** Between two writes, so that replicas can follow. */
const writerRestMs = 2;
const strangerRestMs = 1;
const lagMs = { least: 20, most: 250, between: 1_200 } as const;
const declaredWays: readonly ReadingWay[] = ['/db READ_ONLY', '/v1/query read_only', 'QUERY'];
const longDeclaredWays: readonly ReadingWay[] = ['long /db READ_ONLY'];
const plainWays = readingWays.filter(
  (way) => ![...declaredWays, ...longDeclaredWays].includes(way) && !way.startsWith('long'),
);
const longPlainWays: readonly ReadingWay[] = ['long /v1/query'];

const shareWithout = 0.1;
const longestShareWithout = 0.2;
/** More than replicas are made to lag: they are read from while they do. */
const maxLag = '20s';
/** Beside what the histories take: servers and gateways begin and end. */
const aroundMs = 120_000;

/** Starts what is needed, makes the histories, ends all that was started. */
export function makeConsistencyHistories(
  plan: ConsistencyPlan,
): Promise<{ readonly without: ConsistencyHistory; readonly withTokens: ConsistencyHistory }> {
  const { seed, reads, maxMs, semiSync } = plan;
  const bound = maxMs * (1 + longestShareWithout) + aroundMs;
  return makeHistory({ name: 'reads by token', seed, maxMs: bound }, async (crew) => {
    const set = await crew.start('servers', startReplication({ semiSync }));
    await prepare(set);
    const gateways: Gateway[] = [];
    // Each knows one replica alone: a reader that hops is moved to another server.
    for (const replica of set.replicas()) {
      gateways.push(await crew.start('a gateway', startOver(set, [set.primary(), replica])));
    }
    for (const gateway of gateways) await waitUntilReadable(gateway);
    const short = { reads: reads * shareWithout, maxMs: maxMs * longestShareWithout };
    const stage = { set, gateways, crew };
    const without = await new Play({ ...short, sendsTokens: false }, stage).run();
    const withTokens = await new Play({ reads, maxMs, sendsTokens: true }, stage).run();
    return { without, withTokens };
  });
}

/** Resolves once the gateway answers from its replica, which it does when it knows how far that is behind. */
async function waitUntilReadable(gateway: Gateway): Promise<void> {
  await eventually('a replica answers', async () => (await readerOf(gateway)) > 1);
}

async function prepare(set: ReplicatedSet): Promise<void> {
  const primary = set.primary();
  const keys = describeCreation(parseIdempotencyTable('request_keys', set.target.name));
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
    settings: {
      workers: 1,
      pool: 8,
      reads: 'replicas',
      max_lag: maxLag,
      idempotency_table: 'request_keys',
    },
  });
}

type PlayPlan = Pick<ConsistencyPlan, 'reads' | 'maxMs'> & {
  readonly sendsTokens: boolean;
};

type Stage = {
  readonly set: ReplicatedSet;
  readonly gateways: readonly Gateway[];
  readonly crew: Crew;
};

type Random = () => number;

class Play {
  readonly #plan: PlayPlan;
  readonly #stage: Stage;
  readonly #handed = new Map<number, Carried>();
  readonly #older: string[] = [];
  readonly #strange: string[] = [];
  readonly #counts = new Map<string, number>();
  #reads = 0;
  #judged = 0;
  #toReplica = 0;
  #toPrimary = 0;
  #isLate = false;

  constructor(plan: PlayPlan, stage: Stage) {
    this.#plan = plan;
    this.#stage = stage;
  }

  async run(): Promise<ConsistencyHistory> {
    const { set, crew } = this.#stage;
    crew.note(this.#plan.sendsTokens ? 'plays with tokens' : 'plays without tokens');
    await this.#hop();
    const timer = setTimeout(() => {
      this.#isLate = true;
    }, this.#plan.maxMs);
    await crew.work({
      ...several('writer', writers, (actor, id) => this.#writer(actor, id)),
      ...several('reader', readers, (actor) => this.#reader(actor)),
      ...several('stranger', strangers, (_, id) => this.#stranger(writers + id)),
      ...several('lagger', set.replicas().length, (actor, at) => this.#lagger(actor, at - 1)),
    });
    clearTimeout(timer);
    return this.#history();
  }

  get #isOver(): boolean {
    return this.#isLate || this.#reads >= this.#plan.reads || this.#stage.crew.isOver;
  }

  /**
   * The case that must occur with any seed: a reader that has seen a write goes to a replica that does not have it, and then to the
   * primary.
   */
  async #hop(): Promise<void> {
    const { set, gateways } = this.#stage;
    const [late] = set.replicas() as [ReplicationServer];
    const [behind, ahead] = gateways.map(({ url }) => url) as [string, string];
    const asker = createAsker();
    await set.waitForCatchUp();
    await set.lag(late, 'stopped');
    try {
      await set.primary().query(`update counters set n = n + 1 where id = ${writers + 1}`);
      await set.waitForCatchUp(set.replicas().filter((replica) => replica !== late));
      const first = { url: ahead, way: declaredWays[0] as ReadingWay, isPlain: false };
      const seen = await this.#readAs(asker, nothingCarried, first);
      const moved = await this.#readAs(asker, seen, { ...first, url: behind });
      const plain = { url: behind, way: plainWays[0] as ReadingWay, isPlain: true };
      await this.#readAs(asker, moved, plain);
    } finally {
      await set.lag(late, null);
      asker.end();
    }
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

  #chooseUrl(random: Random): string {
    return pick(random, this.#stage.gateways).url;
  }

  /** Writes, reads what it wrote, hands over what it has seen. */
  async #writer({ random, note }: Actor, id: number): Promise<void> {
    const asker = createAsker();
    let carried = nothingCarried;
    for (let n = 1 + (await this.#lastOf(id)); !this.#isOver; n += 1) {
      note(`writes ${n}`);
      const token = this.#plan.sendsTokens ? carried.token : null;
      const key = `${this.#plan.sendsTokens}-${id}-${n}`;
      const reply = await write(asker, this.#chooseUrl(random), id, { token, random, key });
      if (reply.status !== 200) throw new Error(`a write: ${reply.status} ${reply.text}`);
      const floor = maxOf(carried.floor, new Map([[id, n]]));
      carried = { token: reply.token ?? carried.token, floor, replicaOf: null };
      this.#note('write', reply);
      carried = await this.#readOnce(asker, carried, random);
      this.#handed.set(id, carried);
      await pause(writerRestMs);
    }
    asker.end();
  }

  async #lastOf(id: number): Promise<number> {
    const { set } = this.#stage;
    const rows = await set.primary().query('select n from counters where id = ?', [id]);
    return Number(rows[0]?.n);
  }

  async #reader({ random, note }: Actor): Promise<void> {
    const asker = createAsker();
    let carried = nothingCarried;
    for (let count = 1; !this.#isOver; count += 1) {
      note(`reads for the ${count}th time`);
      carried = await this.#readOnce(asker, carried, random);
      if (random() < handover) this.#handed.set(0, carried);
      const { onPrimary, elsewhere } = readsOfLife;
      const reads = carried.replicaOf === null ? onPrimary : elsewhere;
      if (random() < 1 / reads) carried = this.#begin(random);
    }
    asker.end();
  }

  #begin(random: Random): Carried {
    const giver = Math.floor(random() * (writers + 1));
    return (random() < handover ? this.#handed.get(giver) : null) ?? nothingCarried;
  }

  async #stranger(id: number): Promise<void> {
    const connection = await this.#stage.set.primary().connect();
    while (!this.#isOver) {
      await connection.query(`update counters set n = n + 1 where id = ${id}`);
      await pause(strangerRestMs);
    }
    await connection.end();
  }

  /** Each replica lags in its own way, and never for as long as another. */
  async #lagger({ random, note }: Actor, at: number): Promise<void> {
    const { set } = this.#stage;
    const replica = set.replicas()[at] as ReplicationServer;
    while (!this.#isOver) {
      note('has its replica lag');
      await set.lag(replica, at === 0 ? 'stopped' : 'locked');
      await pause(lagMs.least + random() * (lagMs.most - lagMs.least));
      await set.lag(replica, null);
      note('lets its replica go on');
      await pause(random() * lagMs.between);
    }
  }

  #readOnce(asker: Asker, before: Carried, random: Random): Promise<Carried> {
    const isLong = random() < longShare;
    const isPlain = random() < plainShare;
    const [short, long] = isPlain ? [plainWays, longPlainWays] : [declaredWays, longDeclaredWays];
    const way = pick(random, isLong ? long : short);
    return this.#readAs(asker, before, { url: this.#chooseUrl(random), way, isPlain });
  }

  async #readAs(
    asker: Asker,
    before: Carried,
    {
      url,
      way,
      isPlain,
    }: { readonly url: string; readonly way: ReadingWay; readonly isPlain: boolean },
  ): Promise<Carried> {
    const token = this.#plan.sendsTokens ? before.token : null;
    const reply = await read(asker, url, way, token);
    this.#reads += 1;
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
      const text = `${way}: ${older.join(', ')}; sent ${explain(token)}, reported ${explain(reply.token)}`;
      this.#older.push(text);
    }
    const floor = reply.isUnverified ? before.floor : maxOf(before.floor, seen);
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
