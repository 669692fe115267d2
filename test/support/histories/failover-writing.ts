// Clients that write all the time while servers fail, and what is asked of them and of the servers afterwards.
// Must not know how servers fail, nor how a write is judged.
import { setTimeout as pause } from 'node:timers/promises';
import type { Ask } from '../ask.ts';
import type { Row } from '../database/mariadb.ts';
import { eventually } from '../eventually.ts';
import { createRandom } from '../random.ts';
import { drawWay, repeat, type Write, writeRow } from './failover-writes.ts';
import { describe, isSuccess } from './told.ts';

/** Clients at work. Whoever started them must end them. */
export type Writing = {
  /** Those that have ended. */
  readonly writes: readonly Write[];
  /** Resolves when enough writes that ended after this moment have succeeded. */
  readonly succeed: (fromMs: number) => Promise<void>;
  /** Resolves when the last write has ended. */
  readonly end: () => Promise<void>;
};

/** A server as it is asked without a gateway between. */
type Asked = { readonly query: (sql: string) => Promise<Row[]> };

/** So many writes succeed before the strike, after the promotion, and after the return. */
const enoughWrites = 100;
/** A gateway that serves nothing any more is judged then. */
const mostSilenceMs = 30_000;
/** Clients rest between two writes, so that a round is thousands of them and not more. */
const restMs = 5;
/** So many of the last writes with a key from before the failover are asked for again after it. */
const repeatedWrites = 100;

/** Starts so many clients; each writes through these gateways in turn, by ways that are drawn by the seed. */
export function startWriting(
  gateways: readonly Ask[],
  { seed, clients }: { readonly seed: number; readonly clients: number },
): Writing {
  const random = createRandom(seed);
  const writes: Write[] = [];
  let lastId = 0;
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      lastId += 1;
      const gateway = gateways[lastId % gateways.length] as Ask;
      writes.push(await writeRow(gateway, lastId, drawWay(random)));
      await pause(restMs);
    }
  };
  const all = Promise.all(Array.from({ length: clients }, client));
  return {
    writes,
    succeed: async (fromMs) => {
      const isEnough = () => {
        const ended = writes.filter(({ told }) =>
          told.some((one) => isSuccess(one) && one.toMs >= fromMs),
        );
        return ended.length >= enoughWrites;
      };
      await eventually('writes succeed', isEnough, { timeoutMs: mostSilenceMs, everyMs: 20 });
    },
    end: async () => {
      isOver = true;
      await all;
    },
  };
}

/** Whether a statement that reached a server writes. */
export const isWrite = (statement: string) =>
  /^\s*(insert|update|delete|commit)\b/i.test(statement);

/** What was told with a key before the failover can be asked for afterwards: it is there, or is written now. */
export async function askAgain(
  gateway: Ask,
  writes: readonly Write[],
  struckMs: number,
): Promise<Write[]> {
  const isOld = ({ way, told }: Write) =>
    way === 'batch with key' && told.every(({ toMs }) => toMs <= struckMs);
  const last = new Set(writes.filter(isOld).slice(-repeatedWrites));
  const asked: Write[] = [];
  for (const write of last) asked.push(await repeat(gateway, write));
  return [...writes.filter((write) => !last.has(write)), ...asked];
}

/** Whether nothing runs on the server any more in its database. */
export async function isIdle(server: Asked): Promise<boolean> {
  const busy = await server.query(
    "select id from information_schema.processlist where db = database() and id <> connection_id() and command <> 'Sleep'",
  );
  return busy.length === 0;
}

/** The rows that are there, by id. */
export async function countRows(server: Asked): Promise<ReadonlyMap<number, number>> {
  const rows = await server.query('select id, count(*) as n from written group by id');
  return new Map(rows.map(({ id, n }) => [Number(id), Number(n)]));
}

/** How many writes there were, and how many requests ended in which way. */
export function countAll(writes: readonly Write[]): ReadonlyMap<string, number> {
  const counts = new Map([['writes', writes.length]]);
  for (const told of writes.flatMap((write) => write.told)) {
    const what = describe(told);
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return counts;
}
