// scripts/bench fair: clients beside each other in one worker. How long a quiet one waits beside 500 connections of a loud one, what the
// loud one gets, and whether 200 clients get what their shares promise.
import { createHash, randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../support/statistics.ts';
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

const settleMs = 1_500;

/** The promises. */
const longestQueueMs = 5;
const sameAlone = 0.02;
const sameShare = 0.1;

const point = () => 'select id, number, name, price, made from item where id = 4711';
const loads: Readonly<Record<string, () => string>> = {
  'sleep(0.2)': () => 'select sleep(0.2)',
  'sleep(10)': () => 'select sleep(10)',
  '1 ms': () => 'select sleep(0.001)',
  // The statements have two shapes, because the pipeline takes only the first one.
  'a mix': () => (Math.random() < 0.9 ? 'select sleep(0.001)' : 'select sleep(0.2) as long'),
};

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
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  // Statements that run on are not waited for.
  signal.addEventListener('abort', () => agent.destroy(), { once: true });
  const ask = async () => {
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const { status, queueMs } = await post(agent, port, token, sql());
      if (signal.aborted) break;
      if (status === 200) got.served += 1;
      else got.rejected += 1;
      if (!isFirst) got.queueMs.push(queueMs);
      if (status !== 200 || pauseMs > 0) await sleep(status === 200 ? pauseMs : retryMs);
    }
  };
  await Promise.all(Array.from({ length: connections }, ask));
  agent.destroy();
  return got;
}

function post(
  agent: Agent,
  port: number,
  token: string | null,
  sql: string,
): Promise<{ readonly status: number; readonly queueMs: number }> {
  return new Promise((resolve) => {
    const headers = {
      'Content-Type': 'application/json',
      ...(token !== null && { Authorization: `Bearer ${token}` }),
    };
    const options = { agent, port, host: '127.0.0.1', method: 'POST', path: '/v1/query', headers };
    const lost = () => resolve({ status: 0, queueMs: 0 });
    const sent = request(options, (reply) => {
      const timing = /queue;dur=([\d.]+)/.exec(String(reply.headers['server-timing']));
      const queueMs = Number(timing?.[1] ?? 0);
      reply.on('error', lost).on('end', () => resolve({ status: reply.statusCode ?? 0, queueMs }));
      reply.resume();
    });
    sent.on('error', lost).end(JSON.stringify({ sql }));
  });
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

/** Measures, prints. Rejects when it cannot measure; nothing is left running. */
export async function runFair({ seconds }: FairOptions, signal: AbortSignal): Promise<void> {
  const members = createMembers();
  const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-fair-'));
  const path = join(directory, 'clients.ini');
  writeFileSync(path, formatClients(members), { mode: 0o600 });
  const database = await startDatabase();
  try {
    const plain = await startLoggingGateway(database, { workers: 1, pool });
    const withoutClients = await measureAlone(plain.port, null, seconds, signal).finally(() =>
      plain.stop(),
    );
    const gateway = await startLoggingGateway(database, { workers: 1, pool, clients: path });
    try {
      await measureLoads(gateway, members, withoutClients, seconds, signal);
      await measureShares(gateway, members, seconds, signal);
    } finally {
      await gateway.stop();
    }
  } finally {
    await database.stop();
    rmSync(directory, { recursive: true });
  }
}

/** The rate of a loud client that is the only one, for each load. @param token null: the gateway has no clients */
async function measureAlone(
  port: number,
  token: string | null,
  seconds: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const rates = new Map<string, number>();
  for (const [name, sql] of Object.entries(loads)) {
    const loud = (end: AbortSignal) => keepAsking(port, token, loudConnections, sql, 0, end);
    const [got] = await runBeside([loud], seconds, signal);
    rates.set(name, rateOf(got, seconds));
  }
  return rates;
}

function rateOf(got: Got | undefined, seconds: number): number {
  return (got?.served ?? 0) / seconds;
}

async function measureLoads(
  { port }: Server,
  [loud, quiet]: readonly Member[],
  withoutClients: ReadonlyMap<string, number>,
  seconds: number,
  signal: AbortSignal,
): Promise<void> {
  // All of them before the quiet client comes: for a minute after its last request room is reserved for it.
  const alone = await measureAlone(port, loud?.token ?? null, seconds, signal);
  for (const [name, sql] of Object.entries(loads)) {
    const beLoud = (end: AbortSignal) =>
      keepAsking(port, loud?.token ?? null, loudConnections, sql, 0, end);
    const beQuiet = (end: AbortSignal) =>
      keepAsking(port, quiet?.token ?? null, quietConnections, point, thinkMs, end);
    const [beside, other] = await runBeside([beLoud, beQuiet], seconds, signal);
    const p99 = percentile(other?.queueMs ?? [], 0.99);
    const before = withoutClients.get(name) ?? 0;
    const rate = alone.get(name) ?? 0;
    say(`${name}: quiet, p99 of its wait in ms`, p99, p99 <= longestQueueMs);
    if (before < 1) continue;
    const kept = rate / before;
    say(`${name}: loud alone, of a gateway without clients`, kept, kept >= 1 - sameAlone);
    const left = rateOf(beside, seconds) / rate;
    say(`${name}: loud beside quiet, of alone`, left, left >= (pool - reserved) / pool);
  }
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
  say(`${crowd} clients: the largest deviation from a share`, worst, worst <= sameShare);
}

function say(what: string, value: number, isKept: boolean): void {
  process.stdout.write(
    `${what.padEnd(56)} ${value.toFixed(3).padStart(8)}  ${isKept ? 'kept' : 'NOT KEPT'}\n`,
  );
}
