// A client that carries X-Consistency-Token from reply to request, and what it has seen: the highest value of each counter.
import { Agent } from 'node:http';
import { createAsk } from '../ask.ts';
import { pick } from '../random.ts';
import { composeWrite, writingWays } from './statement-ways.ts';

/** Counters that only grow, and rows that make replies long: each row of the long read contains one counter. */
export const counterTables = `
  create table counters (id int primary key, n bigint not null) engine = innodb;
  create table fillers (id int primary key, pad text not null) engine = innodb;
  insert into fillers select seq, repeat('x', 8000) from seq_1_to_6`;

const shortRead = "select concat('[', id, '=', n, ']') as seen from counters";
const longRead =
  "select concat('[', c.id, '=', c.n, ']') as seen, f.pad from counters c join fillers f order by f.id, c.id";

/** The ways to read counters. */
export const readingWays = [
  '/db READ_ONLY',
  '/v1/query read_only',
  'QUERY',
  '/db',
  '/v1/query',
  'batch',
  'long /db READ_ONLY',
  'long /v1/query',
] as const;
export type ReadingWay = (typeof readingWays)[number];

/** A token, and what its bearer has seen by it: a reply to it must not show less. */
export type Carried = {
  readonly token: string | null;
  readonly floor: ReadonlyMap<number, number>;
  /** The gateway whose replica has shown it; null: the primary has shown it, or nothing has been seen. */
  readonly replicaOf: string | null;
};

export const nothingCarried: Carried = { token: null, floor: new Map(), replicaOf: null };

/** The content of a reply. */
export type ConsistentReply = {
  readonly status: number;
  readonly token: string | null;
  readonly isUnverified: boolean;
  readonly text: string;
};

/** Requests to several gateways on connections that are kept. The caller must end it. */
export type Asker = {
  readonly send: (url: string, wish: Wish) => Promise<ConsistentReply>;
  readonly end: () => void;
};

type Wish = {
  readonly method?: string;
  readonly path: string;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly token: string | null;
};

/** Creates an asker. */
export function createAsker(): Asker {
  const agent = new Agent({ keepAlive: true });
  return {
    send: async (url, { method = 'POST', path, body, headers = {}, token }) => {
      const carried = token === null ? {} : { 'X-Consistency-Token': token };
      const options = { method, agent, headers: { ...headers, ...carried } };
      const reply = await createAsk(url).post(path, body, options);
      const reported = reply.headers['x-consistency-token'];
      return {
        status: reply.status,
        token: typeof reported === 'string' ? reported : null,
        isUnverified: reply.headers['x-consistency'] === 'unverified',
        text: reply.text,
      };
    },
    end: () => agent.destroy(),
  };
}

/** Reads the counters. */
export function read(
  asker: Asker,
  url: string,
  way: ReadingWay,
  token: string | null,
): Promise<ConsistentReply> {
  const ask = (method: string, path: string, body: object) =>
    asker.send(url, { method, path, body, token });
  switch (way) {
    case '/db READ_ONLY':
      return ask('POST', '/db', { SQL: shortRead, READ_ONLY: true });
    case '/v1/query read_only':
      return ask('POST', '/v1/query', { sql: shortRead, read_only: true });
    case 'QUERY':
      return ask('QUERY', '/v1/query', { sql: shortRead });
    case '/db':
      return ask('POST', '/db', { SQL: shortRead });
    case '/v1/query':
      return ask('POST', '/v1/query', { sql: shortRead });
    case 'batch':
      return ask('POST', '/v1/batch', { statements: [{ sql: shortRead }] });
    case 'long /db READ_ONLY':
      return ask('POST', '/db', { SQL: longRead, READ_ONLY: true });
    case 'long /v1/query':
      return ask('POST', '/v1/query', { sql: longRead });
    default:
      throw new Error(`no such way: ${way satisfies never}`);
  }
}

/** Adds one to a counter, by a way that is drawn. */
export function write(
  asker: Asker,
  url: string,
  id: number,
  { token, random, key }: { token: string | null; random: () => number; key: string },
): Promise<ConsistentReply> {
  const sql = `update counters set n = n + 1 where id = ${id}`;
  return asker.send(url, { ...composeWrite(pick(random, writingWays), sql, key), token });
}

/** The counters as a reply shows them: of each the lowest. */
export function countersIn(text: string): ReadonlyMap<number, number> {
  const seen = new Map<number, number>();
  for (const [, id, n] of text.matchAll(/\[(\d+)=(\d+)\]/g)) {
    const value = Math.min(Number(n), seen.get(Number(id)) ?? Number.POSITIVE_INFINITY);
    seen.set(Number(id), value);
  }
  return seen;
}

/** The counters that show less than was seen before. */
export function olderThan(
  floor: ReadonlyMap<number, number>,
  seen: ReadonlyMap<number, number>,
): readonly string[] {
  return [...floor].flatMap(([id, least]) => {
    const now = seen.get(id) ?? 0;
    return now < least ? [`counter ${id}: ${now} after ${least}`] : [];
  });
}

/** The higher counters of both. */
export function maxOf(
  one: ReadonlyMap<number, number>,
  other: ReadonlyMap<number, number>,
): ReadonlyMap<number, number> {
  const most = new Map(one);
  for (const [id, n] of other) most.set(id, Math.max(n, most.get(id) ?? 0));
  return most;
}
