// scripts/bench fair: clients beside each other in one worker. How long a quiet one waits beside 500 connections of a loud one, what the
// loud one gets, and whether 200 clients get what their shares promise.
import { createHash, randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { median, percentile } from '../support/statistics.ts';
import { Asker } from './asker.ts';
import { startDatabase } from './database.ts';
import type { FairOptions } from './options.ts';
import { type Server, startLoggingGateway } from './servers.ts';

const pool = 16;
const reserved = 2;
const loudConnections = 500;
const quietConnections = 2;
const crowd = 200;
const crowdConnections = 2;
const shares = [1, 2, 3, 4] as const;
/** A client that was rejected asks again after this time. */
const retryMs = 50;
/** The quiet client's pause between two requests. */
const thinkMs = 5;

/** The least time for shares: one statement more or less is 10 % of ten. In this time each client has about 100 or more. */
const crowdSeconds = 100;

/** A KILL that meets a SLEEP can stop every SLEEP of MariaDB for two seconds, and the next KILL for two more. */
const settleMs = 5_000;

/** The promises. */
const longestQueueMs = 5;
/** The difference between two measurements of the same thing, at most. */
const noise = 0.02;
const sameShare = 0.1;

const point = () => 'select id, number, name, price, made from item where id = 4711';

let mixed = 0;
/** Each tenth statement is long: drawn at random, their number alone would vary by several per cent. */
function mix(): string {
  mixed += 1;
  return mixed % 10 === 0 ? 'select sleep(0.2) as slow' : 'select sleep(0.001)';
}

/**
 * Work of the loud client. Short statements are measured in many short rounds, because the machine's speed decides on them. Long ones are
 * counted: a round must have many of them.
 */
type Load = { readonly name: string; readonly sql: () => string; readonly isShort: boolean };

const loads: readonly Load[] = [
  { name: 'sleep(0.2)', sql: () => 'select sleep(0.2)', isShort: false },
  { name: 'sleep(10)', sql: () => 'select sleep(10)', isShort: false },
  { name: '1 ms', sql: () => 'select sleep(0.001)', isShort: true },
  { name: 'a mix', sql: mix, isShort: true },
];
const shortRounds = 5;
/** A round of a short load takes this part of the time of a long one. */
const shortPart = 0.25;

type Member = { readonly name: string; readonly share: number; readonly token: string };

/** The replies to a client's connections. */
type Got = { served: number; rejected: number; readonly queueMs: number[] };

/** Keeps connections of a client busy until the signal; resolves when the last one is free. */
async function keepAsking(
  port: number,
  token: string | null,
  connections: number,
  sql: () => string,
  pauseMs: number,
  signal: AbortSignal,
): Promise<Got> {
  const got: Got = { served: 0, rejected: 0, queueMs: [] };
  const ask = async () => {
    const asker = new Asker(port, token, signal);
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const { status, queueMs } = await asker.ask(sql());
      if (signal.aborted) break;
      if (status === 200) got.served += 1;
      else got.rejected += 1;
      if (!isFirst) got.queueMs.push(queueMs);
      if (status !== 200 || pauseMs > 0) await sleep(status === 200 ? pauseMs : retryMs);
    }
  };
  await Promise.all(Array.from({ length: connections }, ask));
  return got;
}

function createMembers(): readonly Member[] {
  const createToken = () => randomBytes(32).toString('base64url');
  const named = ['loud', 'quiet'].map((name) => ({ name, share: 1, token: createToken() }));
  const many = Array.from({ length: crowd }, (_, n) => ({
    name: `member-${n}`,
    share: shares[n % shares.length] as number,
    token: createToken(),
  }));
  return [...named, ...many];
}

function formatClients(members: readonly Member[]): string {
  return members
    .map(({ name, share, token }) => {
      const digest = createHash('sha256').update(token).digest('hex');
      return `[${name}]\nallow = sql\nshare = ${share}\ntoken_sha256 = ${digest}\n`;
    })
    .join('\n');
}

/** Runs clients beside each other for some seconds. */
async function runBeside(
  clients: readonly ((signal: AbortSignal) => Promise<Got>)[],
  seconds: number,
  signal: AbortSignal,
): Promise<readonly Got[]> {
  const end = new AbortController();
  setMaxListeners(0, end.signal);
  const running = Promise.all(clients.map((client) => client(end.signal)));
  try {
    await sleep(seconds * 1000, undefined, { signal });
  } finally {
    end.abort();
    await running;
  }
  // The gateway ends what its clients have left.
  await sleep(settleMs, undefined, { signal });
  return running;
}

/** The gateways that are compared, which run all the time. */
type Gateways = {
  /** Has no clients. */
  readonly plain: Server;
  /** Only the loud client asks it: room is reserved for a quiet one until a minute after its last request. */
  readonly alone: Server;
  readonly shared: Server;
};

/** Measures, prints. Rejects when it cannot measure; nothing is left running. */
export async function runFair({ seconds }: FairOptions, signal: AbortSignal): Promise<void> {
  const members = createMembers();
  const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-fair-'));
  const path = join(directory, 'clients.ini');
  writeFileSync(path, formatClients(members), { mode: 0o600 });
  const database = await startDatabase();
  const servers: Server[] = [];
  const start = async (settings: { readonly clients?: string }) => {
    const server = await startLoggingGateway(database, { workers: 1, pool, ...settings });
    servers.push(server);
    return server;
  };
  try {
    const gateways = {
      plain: await start({}),
      alone: await start({ clients: path }),
      shared: await start({ clients: path }),
    };
    for (const load of loads) await measureLoad(load, gateways, members, seconds, signal);
    await measureShares(gateways.shared, members, seconds, signal);
  } finally {
    for (const server of servers) await server.stop();
    await database.stop();
    rmSync(directory, { recursive: true });
  }
}

/** Alternating rounds of one load: the loud client without clients, alone, and beside the quiet one. */
async function measureLoad(
  { name, sql, isShort }: Load,
  { plain, alone, shared }: Gateways,
  [loud, quiet]: readonly Member[],
  seconds: number,
  signal: AbortSignal,
): Promise<void> {
  const [rounds, length] = isShort ? [shortRounds, seconds * shortPart] : [1, seconds];
  const beLoud =
    ({ port }: Server, token: string | null) =>
    (end: AbortSignal) =>
      keepAsking(port, token, loudConnections, sql, 0, end);
  const loudToken = loud?.token ?? null;
  const beQuiet = (end: AbortSignal) =>
    keepAsking(shared.port, quiet?.token ?? null, quietConnections, point, thinkMs, end);
  const [waits, sameRates, sharedRates]: [number[], number[], number[]] = [[], [], []];
  for (let round = 1; round <= rounds; round += 1) {
    const [before] = await runBeside([beLoud(plain, null)], length, signal);
    const [single] = await runBeside([beLoud(alone, loudToken)], length, signal);
    const [beside, other] = await runBeside([beLoud(shared, loudToken), beQuiet], length, signal);
    waits.push(percentile(other?.queueMs ?? [], 0.99));
    sameRates.push(rateOf(single, length) / rateOf(before, length));
    sharedRates.push(rateOf(beside, length) / rateOf(single, length));
  }
  const isKept = { alone: 1 - noise, shared: (1 - noise) * ((pool - reserved) / pool) };
  say(`${name}: quiet, p99 of its wait in ms`, waits, (wait) => wait <= longestQueueMs);
  say(`${name}: loud alone, of a gateway without clients`, sameRates, (of) => of >= isKept.alone);
  say(`${name}: loud beside quiet, of alone`, sharedRates, (of) => of >= isKept.shared);
}

function rateOf(got: Got | undefined, seconds: number): number {
  return (got?.served ?? 0) / seconds;
}

async function measureShares(
  { port }: Server,
  members: readonly Member[],
  seconds: number,
  signal: AbortSignal,
): Promise<void> {
  const many = members.slice(-crowd);
  const beOne = ({ token }: Member) => {
    // Too slow for the pipeline, which would answer them one after the other.
    const sql = () => 'select sleep(0.03)';
    return (end: AbortSignal) => keepAsking(port, token, crowdConnections, sql, 0, end);
  };
  const got = await runBeside(many.map(beOne), Math.max(crowdSeconds, 2 * seconds), signal);
  const perShare = got.map(({ served }, at) => served / (many[at]?.share ?? 1));
  const middle = perShare.reduce((sum, one) => sum + one, 0) / perShare.length;
  const worst = Math.max(...perShare.map((one) => Math.abs(one / middle - 1)));
  say(`${crowd} clients: the largest deviation from a share`, [worst], (one) => one <= sameShare);
}

/** Prints the median of the rounds, and their lowest and highest value. */
function say(what: string, rounds: readonly number[], isKept: (value: number) => boolean): void {
  const middle = median(rounds);
  const spread =
    rounds.length < 2
      ? ''
      : `${Math.min(...rounds).toFixed(3)} to ${Math.max(...rounds).toFixed(3)}`;
  process.stdout.write(
    `${what.padEnd(56)} ${middle.toFixed(3).padStart(8)}  ${(isKept(middle) ? 'kept' : 'NOT KEPT').padEnd(8)}  ${spread}\n`,
  );
}
