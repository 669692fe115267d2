// The slowest tests and files of a run.
import { resolve } from 'node:path';

/** A test, or a whole file if the name is the file's own path. Files are relative to dist. */
export type Timed = {
  readonly name: string;
  readonly file: string;
  readonly durationMs: number;
};

const listed = 20;

/** The twenty slowest files and the twenty slowest tests, a line each. A test that has subtests is listed beside them. */
export function describeSlowest(timed: readonly Timed[]): string {
  const isFile = ({ name, file }: Timed) => name === resolve('dist', file);
  const files = timed.filter(isFile);
  const tests = timed.filter((one) => !isFile(one));
  return [
    'the slowest files, in seconds',
    ...slowest(files).map(({ file, durationMs }) => `${seconds(durationMs)}  ${source(file)}`),
    'the slowest tests, in seconds',
    ...slowest(tests).map(
      ({ name, file, durationMs }) => `${seconds(durationMs)}  ${source(file)}: ${name}`,
    ),
  ].join('\n');
}

function slowest(timed: readonly Timed[]): Timed[] {
  return [...timed].sort((one, other) => other.durationMs - one.durationMs).slice(0, listed);
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1).padStart(7);
}

function source(file: string): string {
  return file.replace(/\.js$/, '.ts');
}
