// Loads the test files of a group in its process.
import { relative } from 'node:path';
import { test } from 'node:test';
// It names a test that hangs.
import '../../test/support/black-box.ts';

/** Loads compiled test files, one after the other. A file that cannot be loaded is a failed test of this name, and the others run. */
export async function loadGroup(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    try {
      await import(path);
    } catch (error) {
      test(relative('.', path), () => {
        throw error;
      });
    }
  }
}
