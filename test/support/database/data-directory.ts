// The data directory of a private server: made, or copied from the one that a run has made for all of its servers.
import { randomBytes } from 'node:crypto';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createDataDirectory,
  type ServerFiles,
  type ServerProgram,
  serverFiles,
} from '../../../scripts/support/private-server.ts';

/** A directory with the data directory that is copied, and its root's password. */
const templateVariable = 'DBHTTPD_TEST_DATA';

/**
 * Makes the data directory that every server of this process, and of those that it starts, begins with from now on: to copy it takes a
 * tenth of what making one takes. Its owner removes `directory`.
 */
export function shareDataDirectory(
  directory: string,
  program: ServerProgram,
  runAs: string | null,
): void {
  const rootPassword = randomBytes(12).toString('hex');
  createDataDirectory({ program, files: serverFiles(directory), rootPassword, runAs });
  writeFileSync(passwordIn(directory), rootPassword, { mode: 0o600 });
  process.env[templateVariable] = directory;
}

/** Fills a server's directory; the password of its root is returned. */
export function fillDataDirectory(
  files: ServerFiles,
  program: ServerProgram,
  runAs: string | null,
): string {
  const template = process.env[templateVariable];
  if (template === undefined) {
    const rootPassword = randomBytes(12).toString('hex');
    createDataDirectory({ program, files, rootPassword, runAs });
    return rootPassword;
  }
  const made = serverFiles(template);
  for (const part of ['data', 'tmp'] as const) cpSync(made[part], files[part], { recursive: true });
  return readFileSync(passwordIn(template), 'utf8');
}

function passwordIn(directory: string): string {
  return join(directory, 'root-password');
}
