// Runs a load generator within a time limit, ends it with the run, and puts its words into the error when it fails.
import { execFile } from 'node:child_process';

/** A command with its arguments and limits. */
export type Invocation = {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

/** Runs a command to its end and resolves to its stdout. Rejects on a status other than 0 and on the timeout. */
export function runCommand(invocation: Invocation): Promise<string> {
  const { command, args, environment, timeoutMs, signal } = invocation;
  return new Promise((resolve, reject) => {
    const options = {
      env: { ...process.env, ...environment },
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: 16 * 1024 * 1024,
      signal,
    } as const;
    execFile(command, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${command} failed: ${stderr || stdout}`, { cause: error }));
    });
  });
}
