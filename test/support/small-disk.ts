// A disk of 64 KiB for one test, if this machine may mount one.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** Mounts it for the time of the test; null if that is not allowed: the test is skipped with the reason. */
export function mountSmallDisk(t: TestContext): string | null {
  const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory], { stdio: 'pipe' });
  } catch {
    rmSync(directory, { recursive: true });
    t.skip('mounting a tmpfs is not allowed here');
    return null;
  }
  t.after(() => {
    execFileSync('umount', ['--lazy', directory]);
    rmSync(directory, { recursive: true });
  });
  return directory;
}
