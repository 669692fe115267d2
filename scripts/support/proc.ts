// Reads /proc about a tree of processes: CPU time, memory, and the peak since it was last reset.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** One process as /proc/<pid>/stat has it; times in clock ticks. */
export type ProcessStat = {
  readonly pid: number;
  readonly parent: number;
  readonly ticks: number;
  /** Ticks of the children that have ended and were waited for. */
  readonly childTicks: number;
};

/** Parses /proc/<pid>/stat. The command's name may hold spaces and parentheses. */
export function parseStat(text: string): ProcessStat {
  const end = text.lastIndexOf(')');
  const fields = text.slice(end + 2).split(' ');
  const field = (index: number): number => Number(fields[index] ?? Number.NaN);
  return {
    pid: Number.parseInt(text, 10),
    parent: field(1),
    ticks: field(11) + field(12),
    childTicks: field(13) + field(14),
  };
}

/** Parses /proc/<pid>/status: resident memory now and its peak, in bytes. A kernel thread has neither: 0. */
export function parseStatus(text: string): { residentBytes: number; peakBytes: number } {
  const read = (key: string): number => {
    const match = new RegExp(`^${key}:\\s+(\\d+) kB$`, 'm').exec(text);
    return Number(match?.[1] ?? 0) * 1024;
  };
  return { residentBytes: read('VmRSS'), peakBytes: read('VmHWM') };
}

/** The pids of the roots and all their descendants, each once. */
export function descendants(roots: readonly number[], processes: readonly ProcessStat[]): number[] {
  const found = new Set(roots);
  // A loop over a set also visits what is added meanwhile.
  for (const pid of found) {
    for (const candidate of processes) if (candidate.parent === pid) found.add(candidate.pid);
  }
  return [...found];
}

/** A tree's use of the machine at one moment. */
export type Usage = {
  readonly cpuUs: number;
  readonly residentBytes: number;
  readonly peakBytes: number;
};

/** The unit of times in /proc. */
export const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

function readProc(pid: number, name: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    // The process has ended since it was listed.
    return null;
  }
}

function listProcesses(): ProcessStat[] {
  const stats: ProcessStat[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const text = readProc(Number(name), 'stat');
    if (text !== null) stats.push(parseStat(text));
  }
  return stats;
}

function cpuUsOf(stat: ProcessStat | undefined): number {
  return (((stat?.ticks ?? 0) + (stat?.childTicks ?? 0)) / ticksPerSecond) * 1e6;
}

/** CPU time of several trees together, in µs. A tree that is part of another counts once. */
export function readCpuUs(roots: readonly number[]): number {
  const processes = listProcesses();
  const byPid = new Map(processes.map((stat) => [stat.pid, stat]));
  return descendants(roots, processes).reduce((sum, pid) => sum + cpuUsOf(byPid.get(pid)), 0);
}

/** Memory of `root` and its descendants in bytes. Shared pages are divided among the processes that share them (Pss). */
export function readSharedOutBytes(root: number): number {
  return descendants([root], listProcesses())
    .map((pid) => /^Pss:\s+(\d+) kB$/m.exec(readProc(pid, 'smaps_rollup') ?? '')?.[1])
    .reduce((sum, kib) => sum + Number(kib ?? 0) * 1024, 0);
}

/** CPU and memory of `root` and its descendants, with those that have ended and were waited for. */
export function readUsage(root: number): Usage {
  const processes = listProcesses();
  const usage = { cpuUs: 0, residentBytes: 0, peakBytes: 0 };
  for (const pid of descendants([root], processes)) {
    const stat = processes.find((candidate) => candidate.pid === pid);
    const { residentBytes, peakBytes } = parseStatus(readProc(pid, 'status') ?? '');
    usage.cpuUs += cpuUsOf(stat);
    usage.residentBytes += residentBytes;
    usage.peakBytes += peakBytes;
  }
  return usage;
}

/** CPU time of one process alone so far, in ms; null when it has ended. */
export function readCpuMs(pid: number): number | null {
  const text = readProc(pid, 'stat');
  return text === null ? null : (parseStat(text).ticks / ticksPerSecond) * 1e3;
}

/** CPU time of this process's ended children, in µs: the cost of a command that has just run. */
export function readChildrenCpuUs(): number {
  return (parseStat(readFileSync('/proc/self/stat', 'utf8')).childTicks / ticksPerSecond) * 1e6;
}

/** Makes the peaks of `root`'s tree start again from the present use (clear_refs, value 5). */
export function resetPeak(root: number): void {
  for (const pid of descendants([root], listProcesses())) {
    try {
      writeFileSync(`/proc/${pid}/clear_refs`, '5');
    } catch {
      // Kernels without it keep the older, higher peak: growth is then over-reported, never under-reported.
    }
  }
}
