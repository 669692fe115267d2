// A history of batches with idempotency keys under faults: a gateway of several workers before a server of its own behind a proxy that
// cuts and drops, clients that repeat, workers that are killed, a server that crashes. Ends with what contradicts the promises.
// Must not know how a batch is judged.
import { describeCreation, parseLedgerTable } from '../../../src/shared/ledger/ledger-table.ts';
import { type Database, startDatabase } from '../database/mariadb.ts';
import { startProxiedDatabase } from '../database/proxied-database.ts';
import { eventually } from '../eventually.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import { createRandom } from '../random.ts';
import { drawBatch, keyedTables } from './keyed-batches.ts';
import { drawManner, type Story, tellStory } from './keyed-client.ts';
import { layFaults, type Outage, type Strike, strike, type Victims } from './keyed-faults.ts';
import { type Breach, type Found, judgeStories } from './keyed-judge.ts';
import { describe } from './told.ts';

/** What is to happen. */
export type HistoryPlan = {
  readonly seed: number;
  readonly batches: number;
  readonly clients: number;
  /** So many times in the course of it a worker is killed; all connections are cut; the database crashes. */
  readonly strikes: Readonly<Record<Strike, number>>;
  /** So many answers to COMMIT at most never come. */
  readonly drops: number;
};

/** What has happened. */
export type History = {
  readonly breaches: readonly Breach[];
  /** How many requests ended in which way, how many batches were applied, how many faults of a kind there were. */
  readonly counts: ReadonlyMap<string, number>;
  readonly durationMs: number;
};

const workers = 3;
const progressBatches = 500;
/** An end for what hangs. */
const mostMs = 3_600_000;

/** Starts what is needed, makes the history, ends all that was started. `say` is called with lines of progress. */
export async function makeKeyedHistory(
  plan: HistoryPlan,
  say: (line: string) => void,
): Promise<History> {
  const isOwn = process.env.DBHTTPD_TEST_MYSQL === undefined;
  const database = await openDatabase();
  const proxy = await startProxiedDatabase(database);
  let gateway: Gateway | null = null;
  try {
    gateway = await startGateway({
      database: proxy.target,
      settings: { workers, pool: 6, idempotency_table: 'request_keys', statement_timeout: '15s' },
    });
    const strikes = isOwn ? plan.strikes : { ...plan.strikes, crash: 0 };
    const victims = { gateway, database, proxy, workers };
    const run = await play({ ...plan, strikes }, victims, say);
    await gateway.stop();
    gateway = null;
    const found = await look(database);
    const breaches = judgeStories(run.stories, found, run.outages);
    return { breaches, counts: countAll(run, found), durationMs: run.durationMs };
  } finally {
    await gateway?.stop();
    await proxy.stop();
    await database.stop();
  }
}

/** A transaction whose client has gone without a word is ended by the server: when a worker is killed, nobody else can know of it. */
async function openDatabase(): Promise<Database> {
  const args = ['--innodb-flush-log-at-trx-commit=1', '--wait-timeout=5'];
  const database = await startDatabase({ own: true, args });
  await database.query(keyedTables);
  await database.query(describeCreation(parseLedgerTable('request_keys', database.name)));
  return database;
}

type Run = {
  readonly stories: readonly Story[];
  readonly outages: readonly Outage[];
  readonly hits: ReadonlyMap<string, number>;
  readonly durationMs: number;
};

async function play(
  plan: HistoryPlan,
  victims: Victims,
  say: (line: string) => void,
): Promise<Run> {
  const random = createRandom(plan.seed);
  const drawn = Array.from({ length: plan.batches }, (_, index) => ({
    batch: drawBatch(index + 1, random),
    manner: drawManner(random),
  }));
  const stories: Story[] = [];
  const outages: Outage[] = [];
  const faults = layFaults(victims.proxy, random, plan.drops);
  const fromMs = performance.now();
  let isOver = false;
  const client = async () => {
    for (let next = drawn.shift(); next !== undefined; next = drawn.shift()) {
      stories.push(await tellStory(victims.gateway, next.batch, next.manner));
      if (stories.length % progressBatches === 0)
        say(`${stories.length} of ${plan.batches} batches`);
    }
  };
  const striker = async () => {
    for (const { what, after } of planStrikes(plan)) {
      const isDue = () => isOver || stories.length >= after;
      await eventually('so many batches have ended', isDue, { timeoutMs: mostMs });
      if (isOver) return;
      outages.push(await strike(what, victims, random));
    }
  };
  try {
    await Promise.all([striker(), ...Array.from({ length: plan.clients }, client)]);
  } finally {
    // Where one of them has failed, the others are not to go on.
    isOver = true;
    drawn.length = 0;
    faults.remove();
  }
  return { stories, outages, hits: faults.hits(), durationMs: performance.now() - fromMs };
}

/** Each kind at even distances, from one to the next through all of it. */
function planStrikes({
  strikes,
  batches,
}: HistoryPlan): readonly { what: Strike; after: number }[] {
  const kinds = ['crash', 'kill', 'cut'] as const;
  return kinds
    .flatMap((what, kind) => {
      const times = strikes[what];
      const offset = (kind + 1) / (kinds.length + 1);
      return Array.from({ length: times }, (_, index) => ({
        what,
        after: Math.floor(((index + offset) / times) * batches),
      }));
    })
    .sort((one, other) => one.after - other.after);
}

/** With no gateway between, once the server has nothing left to do. */
async function look(database: Database): Promise<Found> {
  await eventually('the server has ended what it still ran', async () => {
    const busy = await database.query(
      "select id from information_schema.processlist where db = database() and id <> connection_id() and command <> 'Sleep'",
    );
    return busy.length === 0;
  });
  const count = async (sql: string) =>
    new Map((await database.query(sql)).map(({ id, n }) => [Number(id), Number(n)]));
  const kept = await database.query(
    'select convert(reply using utf8mb4) as reply from request_keys',
  );
  return {
    entries: await count('select n as id, count(*) as n from entries group by n'),
    marks: await count('select n as id, count(*) as n from marks group by n'),
    totals: await count('select id, n from totals'),
    kept: kept.map(({ reply }) => String(reply)),
  };
}

function countAll(
  { stories, outages, hits }: Run,
  { entries }: Found,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const add = (what: string, n = 1) => counts.set(what, (counts.get(what) ?? 0) + n);
  add('batches', stories.length);
  add('batches applied', entries.size);
  for (const { told } of stories) {
    if (told.some((one) => one.kind === 'reply' && one.status === 200)) add('batches told 200');
    for (const one of told) add(describe(one));
    const rerun = told.find((one) => one.kind === 'reply' && /"retries":[1-9]/.test(one.text));
    if (rerun !== undefined) add('batches run more than once');
  }
  for (const [place, n] of hits) add(`faults at ${place}`, n);
  for (const { what } of outages) add(`strikes: ${what}`);
  return counts;
}
