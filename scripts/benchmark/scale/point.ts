// One point of a curve: its request under load, by what it costs the gateway and how long it takes.

import { readUsage } from '../../support/proc.ts';
import { percentile } from '../../support/statistics.ts';
import { largestCrowd, openCrowd } from '../crowd.ts';
import { download } from '../download.ts';
import { watchOthers } from '../others.ts';
import type { Server } from '../servers.ts';
import { runWrk } from '../wrk.ts';
import type { Probe } from './curves.ts';

/** One measurement of a point. */
export type PointSample = {
  /** Replies, with the share of those that had only begun. */
  readonly requests: number;
  /** CPU time of all the gateway's processes, per request. */
  readonly cpuUs: number;
  /** The middle of the times from a request to the end of its reply. */
  readonly wallUs: number;
  readonly errors: number;
  readonly othersCores: number;
};

/** One on each worker, if they come to different ones: what the machine has cores for. */
const connections = 2;
/** From this size on, one second holds too few replies. */
const largeBytes = 2 * 1024 * 1024;

/** The whole text of a probe's request. */
export function composeText({ request, padding }: Probe): string {
  return `${request}${'x'.repeat(padding.bytes)}${padding.end}`;
}

/** Bytes of a good reply, head included. Throws when the answer is not what the probe says. */
export async function checkAnswer(server: Server, probe: Probe): Promise<number> {
  const text = composeText(probe);
  const { RESULT: result } = await fetchAnswer(server, text);
  const isRight =
    result.ROWS.length === probe.rows &&
    result.HEADER.length === probe.columns &&
    result.ROWS.every((row) => row.length === probe.columns);
  const at = text.indexOf('\r\n');
  const closing = `${text.slice(0, at)}\r\nConnection: close${text.slice(at)}`;
  const reply = await download(server.port, closing);
  if (!isRight || !reply.whole || reply.bodyBytes < probe.bodyBytes) {
    throw new Error(`wrong answer to ${text.slice(0, 300)}`);
  }
  return reply.headBytes + reply.bodyBytes;
}

type Answer = { readonly RESULT: { readonly HEADER: string[]; readonly ROWS: unknown[][] } };

async function fetchAnswer(server: Server, text: string): Promise<Answer> {
  const [method = 'GET', path = '/'] = text.split(' ', 2);
  const body = text.slice(text.indexOf('\r\n\r\n') + 4);
  const headers = { 'Content-Type': 'application/json' };
  const wish = method === 'POST' ? { method, body, headers } : {};
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`, wish);
  return (await response.json()) as Answer;
}

type Load = Pick<PointSample, 'requests' | 'wallUs' | 'errors'>;

/** Loads the gateway with a probe for one second, or for three if replies are large. `size` null: two connections. */
export async function measurePoint(
  server: Server,
  probe: Probe,
  wish: { readonly size: number | null; readonly replyBytes: number; readonly signal: AbortSignal },
): Promise<PointSample> {
  server.trimLogs();
  if (wish.size === null) return observe(server, () => runLoad(server, probe, wish));
  const crowd = await openCrowd(server.port, Math.min(wish.size, largestCrowd()));
  try {
    return await observe(server, async () => {
      const { requests, errors, timesMs } = await crowd.askFor(composeText(probe), 1);
      return { requests, errors, wallUs: percentile(timesMs, 0.5) * 1e3 };
    });
  } finally {
    crowd.close();
  }
}

async function runLoad(
  server: Server,
  { request, padding }: Probe,
  { replyBytes, signal }: { readonly replyBytes: number; readonly signal: AbortSignal },
): Promise<Load> {
  const isLarge = replyBytes >= largeBytes;
  const outcome = await runWrk({
    port: server.port,
    request: { text: request, least: 0, most: 0 },
    padding,
    connections,
    seconds: isLarge ? 3 : 1,
    replyBytes,
    signal,
  });
  // Large replies are still in flight when the time is over, and the bytes that have come have cost their share.
  const requests = isLarge ? (outcome.bytes ?? 0) / replyBytes : outcome.requests;
  return { requests, errors: outcome.errors, wallUs: outcome.p50Ms * 1e3 };
}

async function observe(server: Server, load: () => Promise<Load>): Promise<PointSample> {
  const others = watchOthers([process.pid, server.pid]);
  const before = readUsage(server.pid).cpuUs;
  const done = await load();
  const cpuUs = (readUsage(server.pid).cpuUs - before) / Math.max(1, done.requests);
  return { ...done, cpuUs, othersCores: others() };
}
