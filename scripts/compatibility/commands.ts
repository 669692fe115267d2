// Runs a command of the system to its end, within bounds.
import { execFile } from 'node:child_process';

const timeoutMs = 10 * 60_000;

/**
 * Resolves to the command's stdout. Rejects with the end of its output if it fails or takes ten minutes. The command ends with this
 * process.
 */
export function run(command: string, args: readonly string[], directory: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd: directory, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 };
    const child = execFile(command, args, options, (error, stdout, stderr) => {
      process.off('exit', end);
      if (error === null) return resolve(stdout);
      const said = `${stdout}${stderr}`.trimEnd().split('\n').slice(-10).join('\n');
      reject(new Error(`${command} failed: ${said || error.message}`, { cause: error }));
    });
    const end = () => child.kill();
    process.once('exit', end);
    child.stdin?.end();
  });
}
