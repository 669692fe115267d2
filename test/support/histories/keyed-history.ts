// A history of batches with idempotency keys under faults: a gateway of several workers, a private server behind a proxy that cuts and
// drops, clients that repeat, workers that are killed, a server that crashes. Ends with the contradictions to the promises.
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { type Database, startDatabase } from '../database/mariadb.ts';
import { startProxiedDatabase } from '../database/proxied-database.ts';
import { eventually } from '../eventually.ts';
import { startGateway } from '../gateway.ts';
import { type Crew, createActorRandom, makeHistory, several } from './crew.ts';
import { type Breach, countAlike } from './judging.ts';
import { drawBatch, type KeyedBatch, keyedTables } from './keyed-batches.ts';
import { drawManner, type Manner, type Story, tellStory } from './keyed-client.ts';
import { layKeyedFaults, type Outage, type Strike, strike, type Victims } from './keyed-faults.ts';
import { type Found, judgeStories } from './keyed-judge.ts';
import { describe } from './reported.ts';
import { fetchCounts, fetchKeptReplies, waitUntilIdle } from './server-look.ts';

/** The plan of a history. */
export type HistoryPlan = {
  readonly seed: number;
  readonly batches: number;
  readonly clients: number;
  /** The number of strikes: a worker is killed; all connections are cut; the database crashes. */
  readonly strikes: Readonly<Record<Strike, number>>;
  /** The number of answers to COMMIT that never come. */
  readonly drops: number;
  /** It fails when it has not ended by then; the suite's bound unless given. */
  readonly maxMs?: number;
};

/** The events of a history. */
export type History = {
  readonly breaches: readonly Breach[];
  /** The number of requests by the way in which they ended, of applied batches, and of faults of each kind. */
  readonly counts: ReadonlyMap<string, number>;
  readonly durationMs: number;
};

const workers = 2;
const progressBatches = 500;

/** Starts what is needed, makes the history, ends all that was started. `say` is called with lines of progress. */
export function makeKeyedHistory(
  plan: HistoryPlan,
  say?: (line: string) => void,
): Promise<History> {
  const { seed, maxMs } = plan;
  const bounds = { ...(maxMs === undefined ? {} : { maxMs }), ...(say ? { say } : {}) };
  return makeHistory({ name: 'batches with keys', seed, ...bounds }, async (crew) => {
    const isOwn = process.env.DBHTTPD_TEST_MYSQL === undefined;
    const database = await crew.start('a database', openDatabase());
    const proxy = await crew.start('a proxy', startProxiedDatabase(database));
    const starting = startGateway({
      database: proxy.target,
      settings: { workers, pool: 6, idempotency_table: 'request_keys', statement_timeout: '15s' },
    });
    const gateway = await crew.start('a gateway', starting);
    const strikes = isOwn ? plan.strikes : { ...plan.strikes, crash: 0 };
    const victims = { gateway, database, proxy, workers };
    const run = await play({ ...plan, strikes }, victims, crew);
    crew.note('stops the gateway');
    await crew.stop(gateway);
    crew.note('looks at the database');
    const found = await look(database);
    const breaches = judgeStories(run.stories, found, run.outages);
    return { breaches, counts: countAll(run, found), durationMs: run.durationMs };
  });
}

/**
 * If a transaction's client is gone without a packet, the server ends the transaction: when a worker is killed, nothing else knows of it.
 */
async function openDatabase(): Promise<Database> {
  const args = ['--innodb-flush-log-at-trx-commit=1', '--wait-timeout=5'];
  const database = await startDatabase({ own: true, args });
  await database.query(keyedTables);
  await database.query(describeCreation(parseIdempotencyTable('request_keys', database.name)));
  return database;
}

type Run = {
  readonly stories: readonly Story[];
  readonly outages: readonly Outage[];
  readonly hits: ReadonlyMap<string, number>;
  readonly durationMs: number;
};

/** A batch and how its client behaves; they depend on the seed and the number alone. */
type Part = { readonly batch: KeyedBatch; readonly manner: Manner };

/** The first client gets a reply and repeats, so that there is always a replay. */
const firstManner: Manner = { copies: 1, leavesAfterMs: null, persists: true, repeats: 1 };

function drawPart(seed: number, number: number): Part {
  const random = createActorRandom(seed, `batch ${number}`);
  if (number === 1) return { batch: drawBatch(number, random, true), manner: firstManner };
  return { batch: drawBatch(number, random), manner: drawManner(random) };
}

async function play(plan: HistoryPlan, victims: Victims, crew: Crew): Promise<Run> {
  const { seed, batches, clients, drops } = plan;
  const stories: Story[] = [];
  const outages: Outage[] = [];
  const between = Math.floor(batches / Math.max(drops, 1));
  const faults = layKeyedFaults(victims.proxy, seed, { drops, between });
  const fromMs = performance.now();
  let lastNumber = 0;
  crew.note('plays');
  try {
    await crew.work({
      ...several('client', clients, async ({ note }) => {
        while (lastNumber < batches && !crew.isOver) {
          lastNumber += 1;
          const { batch, manner } = drawPart(seed, lastNumber);
          stories.push(await tellStory(victims.gateway, batch, manner, note));
          if (stories.length % progressBatches === 0)
            crew.say(`${stories.length} of ${batches} batches`);
        }
      }),
      striker: async ({ note, random }) => {
        for (const { what, after } of planStrikes(plan)) {
          note(`waits for ${after} batches, to ${what}; ${stories.length} have ended`);
          const isDue = () => crew.isOver || stories.length >= after;
          await eventually('enough batches have ended', isDue, { timeoutMs: maxPlayMs });
          if (crew.isOver) return;
          note(what);
          outages.push(await strike(what, victims, random));
        }
      },
    });
  } finally {
    faults.remove();
  }
  return { stories, outages, hits: faults.hits(), durationMs: performance.now() - fromMs };
}

/** The history's own bound is shorter. */
const maxPlayMs = 24 * 3_600_000;

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

/** Once the server has nothing left to do. */
async function look(database: Database): Promise<Found> {
  await waitUntilIdle(database);
  return {
    entries: await fetchCounts(database, 'select n as id, count(*) as n from entries group by n'),
    marks: await fetchCounts(database, 'select n as id, count(*) as n from marks group by n'),
    totals: await fetchCounts(database, 'select id, n from totals'),
    kept: await fetchKeptReplies(database),
  };
}

function countAll(
  { stories, outages, hits }: Run,
  { entries }: Found,
): ReadonlyMap<string, number> {
  const of = (isOne: (story: Story) => boolean) => stories.filter(isOne).length;
  const replies = ({ reported }: Story) => reported.filter((one) => one.kind === 'reply');
  return new Map([
    ['batches', stories.length],
    ['batches applied', entries.size],
    ['batches reported 200', of((story) => replies(story).some(({ status }) => status === 200))],
    [
      'batches run more than once',
      of((story) => replies(story).some(({ text }) => /"retries":[1-9]/.test(text))),
    ],
    ...countAlike(stories.flatMap(({ reported }) => reported.map(describe))),
    ...[...hits].map(([place, n]) => [`faults at ${place}`, n] as const),
    ...countAlike(outages.map(({ what }) => `strikes: ${what}`)),
  ]);
}
