// A long run that ends with verdicts: in a directory of its own, ended where it hangs, nothing of it left behind.
// Must not know what is run.
import { signal } from '../../test/support/processes.ts';
import { openRunDirectory, survivors } from './survivors.ts';
import { renderVerdicts, type Verdict } from './verdicts.ts';

/**
 * Makes the run and says its verdicts; resolves to the exit status: 0, or 1 where a promise was broken. The process ends with 1 when
 * the run takes longer than `longestMs`, and with 130 on a signal; whatever was started registers its own end with the process's.
 */
export async function runToVerdicts(
  { prefix, longestMs }: { readonly prefix: string; readonly longestMs: number },
  run: () => Promise<readonly Verdict[]>,
  say: (line: string) => void,
): Promise<number> {
  const directory = openRunDirectory(prefix);
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130));
  setTimeout(() => {
    say('this run hangs, and is ended');
    process.exit(1);
  }, longestMs).unref();
  const verdicts = await run();
  const left = await survivors(directory);
  for (const { pid } of left) signal(pid, 'SIGKILL');
  const found = left.map(({ pid, command: line }) => `${pid} ${line}`).join(' | ');
  const all = [...verdicts, { promise: 'no process outlives the run', kept: found === '', found }];
  say(renderVerdicts(all));
  return all.some(({ kept }) => kept === false) ? 1 : 0;
}
