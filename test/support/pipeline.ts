// Brings quick reads into a gateway's pipeline, and keeps it busy with them.
import { setTimeout as pause } from 'node:timers/promises';
import type { Ask, Reply } from './ask.ts';
import { eventually } from './eventually.ts';
import { readMetric } from './scrape.ts';

const atOnce = 4;
/** The rest of a load's client between two statements: a load is to go on, not to take the processor from what it runs beside. */
const restMs = 5;
/** A faster answer does not count against a shape, whatever the gateway's own limits are. */
const quickMs = 20;

/** The number of statements that have run in the pipeline. */
export function pipelinedStatements(gateway: Ask): Promise<number> {
  return readMetric(gateway, 'dbhttpd_pipeline_statements_total');
}

/**
 * Sends the statement until all of a burst run in the pipeline, and none was so slow there that the next one may not. Nothing else may be
 * sent meanwhile.
 */
export async function enterPipeline(gateway: Ask, sql: string): Promise<void> {
  const askBursts = async (count: number) => {
    const replies: Reply[] = [];
    for (let round = 0; round < count; round += 1) {
      const burst = Array.from({ length: atOnce }, () => gateway.dbPost({ SQL: sql }));
      replies.push(...(await Promise.all(burst)));
    }
    return replies;
  };
  // A shape is quick after eight answers; before that there is nothing to count.
  await askBursts(3);
  await eventually(
    `the pipeline takes ${sql}`,
    async () => {
      const before = await pipelinedStatements(gateway);
      const replies = await askBursts(2);
      const slowestMs = Math.max(...replies.map(databaseMs));
      const written = (await pipelinedStatements(gateway)) - before;
      return written === replies.length && slowestMs < quickMs;
    },
    // A shape that pauses of the machine have thrown out stays out for longer each time.
    { timeoutMs: 150_000, everyMs: 1 },
  );
}

/** The time that a statement was in the database, from its reply. */
function databaseMs({ headers }: Reply): number {
  return Number(/db;dur=([\d.]+)/.exec(String(headers['server-timing']))?.[1] ?? Number.NaN);
}

/** The results of a load. */
export type Seen = { readonly replies: number; readonly longestMs: number };

/** A load that runs until it is stopped. */
export type Load = {
  /** Forgets how long replies took so far. */
  readonly forget: () => void;
  readonly seen: () => Seen;
  /** Resolves to what was seen since the last `forget`. Rejects when a reply was wrong. */
  readonly stop: () => Promise<Seen>;
};

/** Sends one statement after the other, `clients` at a time. `check` throws on a wrong reply. */
export function startLoad(
  gateway: Ask,
  sql: (n: number) => string,
  check: (reply: Reply, n: number) => void,
  clients = 4,
): Load {
  let isOver = false;
  let next = 0;
  let seen = { replies: 0, longestMs: 0 };
  const loops = Array.from({ length: clients }, async () => {
    while (!isOver) {
      const n = next++;
      const from = performance.now();
      const reply = await gateway.dbPost({ SQL: sql(n) });
      const ms = performance.now() - from;
      check(reply, n);
      seen = { replies: seen.replies + 1, longestMs: Math.max(seen.longestMs, ms) };
      await pause(restMs);
    }
  });
  const all = Promise.all(loops);
  all.catch(() => undefined);
  return {
    forget: () => {
      seen = { replies: 0, longestMs: 0 };
    },
    seen: () => seen,
    stop: async () => {
      isOver = true;
      await all;
      return seen;
    },
  };
}
