// A directory of named statements of a test's own.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createWorkspace } from '../../../support/workspace.ts';

/** A directory. The test that created it must remove it. */
export type NamedDirectory = {
  readonly path: string;
  /** Writes a file, or replaces it. */
  readonly write: (text: string, file?: string) => void;
  /** Deletes a file. */
  readonly erase: (file: string) => void;
  readonly remove: () => void;
};

/** Creates a directory with one file. */
export function createNamedDirectory(text: string): NamedDirectory {
  const workspace = createWorkspace('named', () => undefined);
  const write = (content: string, file = 'all.sql') =>
    writeFileSync(join(workspace.path, file), content, { mode: 0o640 });
  write(text);
  return {
    path: workspace.path,
    write,
    erase: (file) => rmSync(join(workspace.path, file)),
    remove: () => workspace.remove(),
  };
}
