// A temporary directory of a test's own that goes with it, however the test's process ends.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A directory of mode 0700. `remove` deletes it. */
export type Workspace = { readonly path: string; readonly remove: () => void };

/**
 * Creates a directory below the system's temporary one. When the process ends before `remove`, `lastWork`
 * runs (synchronously) and the directory is deleted all the same.
 */
export function createWorkspace(prefix: string, lastWork: () => void): Workspace {
  const path = mkdtempSync(join(tmpdir(), `dbhttpd-${prefix}-`));
  const erase = () => rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  const abandon = () => {
    lastWork();
    erase();
  };
  // The runner ends a test file that takes too long by SIGTERM, which by default skips 'exit'.
  const leave = () => process.exit(143);
  process.once('exit', abandon).once('SIGTERM', leave);
  return {
    path,
    remove: () => {
      process.off('exit', abandon).off('SIGTERM', leave);
      erase();
    },
  };
}
