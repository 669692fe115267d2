// Runs a command of the system to its end, within bounds.
// Must not know which.
import { spawnSync } from 'node:child_process';

const timeoutMs = 10 * 60_000;

/** What the command wrote to stdout. Throws with the end of what it said when it fails or takes ten minutes. */
export function run(command: string, args: readonly string[], directory: string): string {
  const ended = spawnSync(command, args, {
    cwd: directory,
    encoding: 'utf8',
    timeout: timeoutMs,
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
  });
  if (ended.status === 0) return ended.stdout;
  const said = `${ended.stdout ?? ''}${ended.stderr ?? ''}`.trimEnd().split('\n').slice(-10);
  throw new Error(`${command} ${args.join(' ')}: ${ended.error?.message ?? `exit ${ended.status}`}
${said.join('\n')}`);
}
