// wrk as the load of small replies: its arguments, and what its summary says.
import { join } from 'node:path';
import { runCommand } from './command.ts';
import type { Outcome } from './outcome.ts';
import type { Request } from './request.ts';

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

/** The request that wrk sends, and the duration. */
export type WrkLoad = {
  readonly port: number;
  readonly request: Request;
  /** Letters after a request that is too long for a command line, and the text after them. */
  readonly padding?: { readonly bytes: number; readonly end: string };
  readonly connections: number;
  readonly seconds: number;
  readonly replyBytes: number;
  readonly signal: AbortSignal;
};

/** Loads a server with one thread of wrk. */
export async function runWrk(load: WrkLoad): Promise<Outcome> {
  const { padding, request } = load;
  const limits = ['-t', '1', '-c', String(load.connections), '-d', `${load.seconds}s`];
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
      ...[request.text, String(request.least), String(request.most)],
      ...(padding === undefined ? [] : [String(padding.bytes), padding.end]),
    ],
    timeoutMs: load.seconds * 1000 + 15_000,
    signal: load.signal,
  });
  return parseWrk(output, load.replyBytes);
}
