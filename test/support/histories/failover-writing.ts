// Clients that write all the time while servers fail, and the checks on them and on the servers afterwards.
import { setTimeout as pause } from 'node:timers/promises';
import type { Ask } from '../ask.ts';
import { eventually } from '../eventually.ts';
import { type Actor, type Crew, several } from './crew.ts';
import { drawWay, repeat, type Write, writeRow } from './failover-writes.ts';
import { countAlike } from './judging.ts';
import { describe, isSuccess } from './reported.ts';
import { type Asked, fetchCounts } from './server-look.ts';

/** Clients at work. The caller must end them. */
export type Writing = {
  /** The writes that have ended. */
  readonly writes: readonly Write[];
  /** Resolves when enough writes that ended after this moment have succeeded. */
  readonly succeed: (fromMs: number) => Promise<void>;
  /** Resolves when the last write has ended. */
  readonly end: () => Promise<void>;
};

/** A gateway that serves nothing any more is judged then. */
const maxSilenceMs = 60_000;
/** The rest unless given: a round is thousands of writes, and not more. */
const usualRestMs = 5;
/** The number of writes with a key from shortly before the failover that are sent again after it. */
const repeatedWrites = 100;

/** The amount of writing. */
export type WritingPlan = {
  readonly clients: number;
  /** How long a client rests between two writes. */
  readonly restMs?: number;
  /** This many writes succeed before the strike, after the promotion, and after the return. */
  readonly enoughWrites?: number;
  /** Ids begin behind it. */
  readonly lastId?: number;
};

const usuallyEnough = 100;

/** Starts this many clients. Each writes through these gateways in turn. The seed and the client decide the ways to write. */
export function startWriting(
  gateways: readonly Ask[],
  { clients, restMs = usualRestMs, enoughWrites = usuallyEnough, lastId = 0 }: WritingPlan,
  crew: Crew,
): Writing {
  const writes: Write[] = [];
  let isOver = false;
  const client = async ({ random, note }: Actor, number: number) => {
    for (let count = 0; !isOver && !crew.isOver; count += 1) {
      const id = lastId + count * clients + number;
      const way = drawWay(random);
      note(`write ${id} by ${way}`);
      writes.push(await writeRow(gateways[count % gateways.length] as Ask, id, way));
      await pause(restMs);
    }
  };
  const all = crew.work(several('client', clients, client));
  // `end` reports a failure; until then nothing waits for it.
  all.catch(() => undefined);
  return {
    writes,
    succeed: async (fromMs) => {
      const isEnough = () => {
        const ended = writes.filter(({ reported }) =>
          reported.some((one) => isSuccess(one) && one.toMs >= fromMs),
        );
        return ended.length >= enoughWrites;
      };
      await eventually('writes succeed', isEnough, { timeoutMs: maxSilenceMs, everyMs: 20 });
    },
    end: async () => {
      isOver = true;
      await all;
    },
  };
}

/** Tells whether a statement that reached a server writes. */
export const isWrite = (statement: string) =>
  /^\s*(insert|update|delete|commit)\b/i.test(statement);

/** Sends the request of a reply from before the failover again, with its key: the row is there, or is written now. */
export async function askAgain(
  gateway: Ask,
  writes: readonly Write[],
  struckMs: number,
): Promise<Write[]> {
  const isOld = ({ way, reported }: Write) =>
    way === 'batch with key' && reported.every(({ toMs }) => toMs <= struckMs);
  const last = new Set(writes.filter(isOld).slice(-repeatedWrites));
  const asked: Write[] = [];
  for (const write of last) asked.push(await repeat(gateway, write));
  return [...writes.filter((write) => !last.has(write)), ...asked];
}

/** The rows of the server, by id. */
export function countRows(server: Asked): Promise<ReadonlyMap<number, number>> {
  return fetchCounts(server, 'select id, count(*) as n from written group by id');
}

/** The number of writes, and of requests by the way in which they ended. */
export function countAll(writes: readonly Write[]): ReadonlyMap<string, number> {
  const ends = writes.flatMap(({ reported }) => reported.map(describe));
  return new Map([['writes', writes.length], ...countAlike(ends)]);
}
