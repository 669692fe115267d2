// How many processors this process may use: cores, affinity and cgroup quota.
// Must not know what they are counted for.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';

type ReadFile = (path: string) => string | null;

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

/** The processors that may be used at once: at least 1; a quota of 1.5 counts as 2. */
export function processorCount(cores = availableParallelism(), read: ReadFile = readText): number {
  return Math.max(1, Math.min(cores, Math.ceil(Math.min(quotaV2(read), quotaV1(read)))));
}

/** cgroup v2: the smallest quota on the way up from this process's group. */
function quotaV2(read: ReadFile): number {
  const own = /^0::(.*)$/m.exec(read('/proc/self/cgroup') ?? '')?.[1] ?? '/';
  let quota = Number.POSITIVE_INFINITY;
  for (let group = own; ; group = dirname(group)) {
    const limit = /^(\d+) (\d+)/.exec(read(join('/sys/fs/cgroup', group, 'cpu.max')) ?? '');
    if (limit !== null) quota = Math.min(quota, Number(limit[1]) / Number(limit[2]));
    if (group === '/' || group === '.') return quota;
  }
}

function quotaV1(read: ReadFile): number {
  const quota = Number(read('/sys/fs/cgroup/cpu/cpu.cfs_quota_us') ?? -1);
  const period = Number(read('/sys/fs/cgroup/cpu/cpu.cfs_period_us') ?? 0);
  return quota > 0 && period > 0 ? quota / period : Number.POSITIVE_INFINITY;
}
