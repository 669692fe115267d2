// The access log: a line for every request, in a file of its own beside the log, or on stdout.
// Must not know what a line says. A line that cannot be written is counted; no request waits or fails for it.
import { type LineWriter, openLineWriter } from '../../shared/process/line-writer.ts';
import { createCombinedFormat, createJsonFormat } from './access-lines.ts';
import type { Observe } from './observation.ts';

export type AccessLog = {
  readonly observe: Observe;
  /** Opens the file anew; a text says why it could not. */
  readonly reopen: () => string | null;
  readonly flush: () => void;
  readonly lost: () => number;
};

/** The descriptor of stdout. */
export const stdout = 1;

/** The access log's path: beside the log, `.access.log` in the place of `.log`. */
export function accessLogPath(log: string): string {
  return `${log.endsWith('.log') ? log.slice(0, -4) : log}.access.log`;
}

/**
 * Opens it. What cannot be opened now may be by `reopen`: until then lines are lost, and service goes on.
 * @param onProblem told why it could not be opened
 */
export function openAccessLog(
  format: 'json' | 'combined',
  target: string | number,
  onProblem: (reason: string) => void = () => {},
): AccessLog {
  const { finished, refused } = format === 'json' ? createJsonFormat() : createCombinedFormat();
  let writer: LineWriter | null = null;
  let lostWithoutFile = 0;
  const write = (line: string) => {
    if (writer === null) lostWithoutFile += 1;
    else writer.write(line);
  };
  const open = (): string | null => {
    try {
      writer = openLineWriter(target);
      return null;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? String(error);
    }
  };
  const problem = open();
  if (problem !== null) onProblem(problem);
  return {
    observe: (observation) => {
      if (observation.kind === 'request over') write(finished(observation.record, Date.now()));
      else if (observation.kind === 'no request') write(refused(observation.refused, Date.now()));
    },
    reopen: () => (writer === null ? open() : writer.reopen()),
    flush: () => writer?.flush(),
    lost: () => lostWithoutFile + (writer?.lost() ?? 0),
  };
}
