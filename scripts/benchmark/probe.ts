// Before anything is measured: does each server give the right answer, and how large is it?
// Must not know loads or rounds.
import type { Cell } from './cells.ts';
import { download } from './download.ts';
import type { Server } from './servers.ts';
import type { Workload } from './workloads.ts';
import { composeRequest } from './wrk.ts';

/** Sizes of a good reply. */
export type Reply = { readonly bytes: number; readonly bodyBytes: number };

type Answer = { RESULT?: { HEADER?: unknown[]; ROWS?: unknown[][]; SUCCESS?: boolean } };

/** Whether a body is the answer that the workload wants: all of its rows with all of their columns, or success. */
export function isRight(workload: Workload, text: string): boolean {
  const { RESULT: result } = JSON.parse(text) as Answer;
  if (workload.rows === null) return result?.SUCCESS === true;
  const { HEADER: header = [], ROWS: rows = [] } = result ?? {};
  return rows.length === workload.rows && rows.every((row) => row.length === header.length);
}

function urlOf(server: Server, request: string): string {
  const [, path = '/'] = request.split(' ');
  return `http://127.0.0.1:${server.port}${path}`;
}

/** Asks a server once and looks at the answer; `constant` servers are not expected to know it. Throws on a wrong one. */
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
  const { before, after } = composeRequest(cell, server);
  // An id from the middle has the usual number of digits.
  const request = `${before}${Math.ceil(workload.span / 2)}${after}\r\n`;
  if (!constant) {
    const response = await fetch(urlOf(server, request), { signal });
    const text = await response.text();
    if (response.status !== 200 || !isRight(workload, text)) {
      throw new Error(`wrong answer to ${workload.name}: ${response.status} ${text.slice(0, 300)}`);
    }
  }
  const reply = await download(server.port, request);
  if (!reply.whole) throw new Error(`a reply to ${workload.name} was cut off`);
  return { bytes: reply.headBytes + reply.bodyBytes, bodyBytes: reply.bodyBytes };
}
