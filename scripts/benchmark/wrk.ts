// wrk as the load of small replies: its arguments, and what its summary says.
// Must not know which server answers.
import { join } from 'node:path';
import type { Cell } from './cells.ts';
import { runCommand } from './command.ts';
import type { Outcome } from './outcome.ts';
import type { Server } from './servers.ts';
import { splitStatement } from './workloads.ts';

const script = join(import.meta.dirname, '../../../scripts/benchmark/lua/http.lua');

type Summary = Readonly<
  Record<
    | 'requests'
    | 'durationUs'
    | 'bytes'
    | 'p50Us'
    | 'p99Us'
    | 'connect'
    | 'read'
    | 'write'
    | 'timeout'
    | 'status',
    number
  >
>;

/** Parses wrk's output with the summary line of http.lua. `replyBytes`: what a good reply has, head included. */
export function parseWrk(output: string, replyBytes: number): Outcome {
  const line = /^SUMMARY (.*)$/m.exec(output)?.[1];
  if (line === undefined) throw new Error(`no summary in wrk's output: ${output}`);
  const summary = JSON.parse(line) as Summary;
  const { requests, connect, read, write, timeout, status } = summary;
  return {
    requests,
    seconds: summary.durationUs / 1e6,
    p50Ms: summary.p50Us / 1e3,
    p99Ms: summary.p99Us / 1e3,
    errors: connect + read + write + timeout + status + countOddSizes(summary, replyBytes),
    firstByteMs: null,
    bytes: summary.bytes,
  };
}

/** An error that MySQL reports has status 200: replies much smaller on average than the good one give it away. */
function countOddSizes({ requests, bytes }: Summary, replyBytes: number): number {
  if (requests === 0) return 1;
  const missing = 1 - bytes / requests / replyBytes;
  return missing > 0.1 ? Math.ceil(missing * requests) : 0;
}

/** The request of a cell, as text before and after the id; the script adds the empty line. */
export function composeRequest(cell: Cell, server: Server): { before: string; after: string } {
  const { before, after } = splitStatement(cell.workload);
  // Through JSON and URL encoding, each half by itself: neither looks across characters.
  const encode = (text: string): string => encodeURIComponent(JSON.stringify(text).slice(1, -1));
  const open = encodeURIComponent('{"SQL":"');
  const close = encodeURIComponent('"}');
  const head = [
    `Host: 127.0.0.1:${server.port}`,
    ...(cell.load.close ? ['Connection: close'] : []),
  ];
  return {
    before: `GET ${server.path(cell.workload.name)}?${open}${encode(before)}`,
    after: `${encode(after)}${close} HTTP/1.1\r\n${head.join('\r\n')}\r\n`,
  };
}

/** What wrk sends, and for how long. */
export type WrkLoad = {
  readonly port: number;
  /** The request before and after the id, the last empty line left out. */
  readonly before: string;
  readonly after: string;
  /** The largest id; 0: the request has none. */
  readonly span: number;
  /** For long requests, which no command line would hold: letters after `after`, and how the request goes on. */
  readonly padding?: { readonly bytes: number; readonly end: string };
  readonly connections: number;
  readonly seconds: number;
  readonly replyBytes: number;
  readonly signal: AbortSignal;
};

/** Loads a server with one thread of wrk. */
export async function runWrk(load: WrkLoad): Promise<Outcome> {
  const { padding } = load;
  const limits = ['-t', '1', '-c', String(load.connections), '-d', `${load.seconds}s`];
  const request = [load.before, load.after, String(load.span)];
  const output = await runCommand({
    command: 'wrk',
    args: [
      ...limits,
      '--timeout',
      '10s',
      '-s',
      script,
      `http://127.0.0.1:${load.port}/`,
      '--',
      ...request,
      ...(padding === undefined ? [] : [String(padding.bytes), padding.end]),
    ],
    timeoutMs: load.seconds * 1000 + 15_000,
    signal: load.signal,
  });
  return parseWrk(output, load.replyBytes);
}
