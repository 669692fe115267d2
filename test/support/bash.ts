// Runs a script with Bash, as a reader of a page pastes it, but without the reader's own files.
import { type ExecFileOptions, execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Bash's arguments for a script. Without `--norc`, a Bash that finds a socket at its standard input takes it for a remote login and reads
 * ~/.bashrc (Bash's manual, "Invoked by remote shell daemon"), and Node's pipes are sockets.
 */
export function bashArguments(script: string): readonly string[] {
  return ['--norc', '-c', script];
}

/** Runs the script and resolves to what it printed. Rejects, with `stdout` and `stderr` at the error, if it fails. */
export async function runBash(script: string, options: ExecFileOptions = {}): Promise<string> {
  const { stdout } = await promisify(execFile)('bash', bashArguments(script), options);
  return String(stdout);
}
