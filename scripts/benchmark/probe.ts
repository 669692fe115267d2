// Before anything is measured: does each server give the right answer, and how large is it?
import type { Cell } from './cells.ts';
import { download } from './download.ts';
import { composeRequest, fillIn } from './request.ts';
import type { Server } from './servers.ts';
import type { Workload } from './workloads.ts';

/** Sizes of a good reply. */
export type Reply = { readonly bytes: number; readonly bodyBytes: number };

type Answer = {
  RESULT?: { HEADER?: unknown[]; ROWS?: unknown[][]; SUCCESS?: boolean };
  columns?: unknown[];
  /** Arrays, or objects. */
  rows?: object[];
  affected_rows?: number;
  committed?: boolean;
  results?: { affected_rows: number }[];
};

/** Tells whether a body is the right answer of the workload: all of its rows with all of their columns, or success. */
export function isRight(workload: Workload, text: string): boolean {
  const answer = JSON.parse(text) as Answer;
  const { RESULT: result, columns, committed, results = [] } = answer;
  if (workload.kind === 'batch') {
    const isWhole = committed === true && results.length === 3;
    return isWhole && results.every((each) => each.affected_rows === 1);
  }
  if (workload.rows === null) return result?.SUCCESS === true || answer.affected_rows === 1;
  const header = result?.HEADER ?? columns ?? [];
  const rows: readonly object[] = result?.ROWS ?? answer.rows ?? [];
  return (
    rows.length === workload.rows && rows.every((row) => Object.keys(row).length === header.length)
  );
}

function ask(server: Server, request: string, signal: AbortSignal): Promise<Response> {
  const [method = '', path = '/'] = request.split(' ');
  const url = `http://127.0.0.1:${server.port}${path}`;
  if (method === 'GET') return fetch(url, { signal });
  const key = /^Idempotency-Key: (\S+)/m.exec(request)?.[1];
  const headers = {
    'Content-Type': 'application/json',
    ...(key === undefined ? {} : { 'Idempotency-Key': `${key}-first` }),
  };
  const body = request.slice(request.indexOf('\r\n\r\n') + 4);
  return fetch(url, { method, headers, body, signal });
}

/** Sends one request to a server and checks the answer. `constant` servers need not know the data. Throws on a wrong answer. */
export async function probe(
  server: Server,
  workload: Workload,
  { constant, signal }: { readonly constant: boolean; readonly signal: AbortSignal },
): Promise<Reply> {
  const cell: Cell = {
    id: 'probe',
    workload,
    load: { connections: 1, close: true },
    peers: [],
    decides: false,
  };
  // An id from the middle has the usual number of digits.
  const request = fillIn(composeRequest(cell, server), Math.ceil(workload.span / 2));
  if (!constant) {
    const response = await ask(server, request, signal);
    const text = await response.text();
    if (response.status !== 200 || !isRight(workload, text)) {
      throw new Error(`wrong answer to ${workload.name}: ${response.status} ${text.slice(0, 300)}`);
    }
  }
  const reply = await download(server.port, request);
  if (!reply.whole) throw new Error(`a reply to ${workload.name} was cut off`);
  return { bytes: reply.headBytes + reply.bodyBytes, bodyBytes: reply.bodyBytes };
}
