// The cost of metrics, digests and the access log: runs the process that measures it.
import { join } from 'node:path';
import { createWorkspace } from '../../test/support/workspace.ts';
import { runCommand } from './command.ts';
import type { ObserverSet } from './observer-set.ts';
import type { Reading } from './reading.ts';

const program = join(import.meta.dirname, 'observing-loop.js');

/** CPU in µs per request of a process that counts and logs imaginary requests, compared with one that does not observe them. */
export async function measureObserving(who: ObserverSet, signal: AbortSignal): Promise<Reading> {
  const workspace = createWorkspace('observing', () => {});
  try {
    const output = await runCommand({
      command: process.execPath,
      args: [program, who, join(workspace.path, 'access.log')],
      timeoutMs: 30_000,
      signal,
    });
    const { usEach, logged, lines } = JSON.parse(output) as {
      usEach: number;
      logged: number;
      lines: number;
    };
    const errors = Math.abs(logged - lines);
    return { value: usEach, errors, note: `${lines} lines in the log` };
  } finally {
    workspace.remove();
  }
}
