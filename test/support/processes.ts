// Reads /proc about processes that are not children of this one.
import { readdirSync, readFileSync } from 'node:fs';
import { eventually } from './eventually.ts';

/** Tells whether a process of this pid exists and is not a zombie. */
export function isAlive(pid: number): boolean {
  const stat = readStat(pid);
  return stat !== null && stat.state !== 'Z' && stat.state !== 'X';
}

/** Tells whether a signal has stopped a process of this pid, and it has not continued. */
export function isStopped(pid: number): boolean {
  return readStat(pid)?.state === 'T';
}

/** Tells whether its main thread waits for something, and neither runs nor waits for the processor. */
export function isSleeping(pid: number): boolean {
  return readStat(pid)?.state === 'S';
}

/** When a process was started, in clock ticks since boot; null: there is none. It distinguishes two processes that had the same pid. */
export function startOf(pid: number): number | null {
  return readStat(pid)?.start ?? null;
}

/** The pids of the living children of `pid`, in ascending order. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((candidate) => readStat(candidate)?.parent === pid && isAlive(candidate))
    .sort((left, right) => left - right);
}

/** Resolves once no process of this pid is left. Rejects after `timeoutMs`. */
export async function gone(pid: number, timeoutMs = 30_000): Promise<void> {
  await eventually(`process ${pid} is gone`, () => !isAlive(pid), { timeoutMs });
}

/** Sends a signal; false if the process does not exist any more. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

/** Stops a process of several threads, and returns once none of them runs any more: the signal alone leaves them a moment. Throws after five seconds. */
export function freeze(pid: number): void {
  process.kill(pid, 'SIGSTOP');
  const until = performance.now() + 5_000;
  const threads = () => readdirSync(`/proc/${pid}/task`);
  while (!threads().every((thread) => readStat(`${pid}/task/${thread}`)?.state === 'T')) {
    if (performance.now() > until) throw new Error(`process ${pid} does not stop`);
  }
}

type Stat = { readonly state: string; readonly parent: number; readonly start: number };

/** Source: proc_pid_stat(5). */
function readStat(pid: number | string): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command's name is in parentheses and may contain anything, parentheses too.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const [state = '', parent = ''] = fields;
    return { state, parent: Number(parent), start: Number(fields[19]) };
  } catch {
    return null;
  }
}
