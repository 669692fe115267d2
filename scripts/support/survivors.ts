// A temporary directory for all that a run starts, and what of it still lives afterwards.
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../test/support/eventually.ts';
import { signal } from '../../test/support/processes.ts';

/** A process that outlived its run. */
export type Survivor = { readonly pid: number; readonly command: string };

/** Makes the directory and lets TMPDIR name it. When this process ends, what still lives goes with the directory. */
export function openRunDirectory(prefix: string): string {
  const parent = tmpdir();
  const directory = mkdtempSync(join(parent.length > 40 ? '/tmp' : parent, prefix));
  // Root's demo runs its MariaDB under an account that must reach its files.
  chmodSync(directory, 0o711);
  process.env.TMPDIR = directory;
  process.once('exit', () => {
    for (const { pid } of find(directory)) signal(pid, 'SIGKILL');
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  return directory;
}

/** Processes of the run that still live after a moment in which the last of them may go. */
export async function survivors(directory: string): Promise<readonly Survivor[]> {
  try {
    const none = () => find(directory).length === 0;
    await eventually('all is gone', none, { timeoutMs: 3000, everyMs: 50 });
    return [];
  } catch {
    return find(directory);
  }
}

function find(directory: string): Survivor[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => read(`/proc/${pid}/environ`).split('\0').includes(`TMPDIR=${directory}`))
    .map((pid) => ({
      pid: Number(pid),
      command: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' '),
    }));
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
