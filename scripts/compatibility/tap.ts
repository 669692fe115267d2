// Reads the TAP output of Node's test runner: how many passed, which failed, which were skipped and why.

/** The result of a run. Its counts are the runner's. */
export type Tally = {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Name and file of each failure. A test that failed because of its subtests is listed beside them. */
  readonly failures: readonly string[];
  /** Name and reason. */
  readonly skips: readonly string[];
};

const resultLine = /^ *(not )?ok \d+ - (.*)$/;
const skipMark = / # SKIP\b ?(.*)$/;

/** The failed test of a line, without its file; null for every other line. What TAP marks as skipped or TODO has not failed. */
export function readFailure(line: string): string | null {
  const match = resultLine.exec(line);
  const isFailure = match?.[1] !== undefined && !skipMark.test(line) && !/ # TODO\b/.test(line);
  return isFailure ? (match?.[2] ?? '') : null;
}

/** Reads a whole output; null if it has no closing counts, because the runner did not come to its end. */
export function readTap(text: string): Tally | null {
  const count = (name: string) => {
    const found = [...text.matchAll(new RegExp(`^# ${name} (\\d+)$`, 'gm'))];
    // One output for the files that run alone, one for the others.
    return found.length === 0 ? null : found.reduce((sum, [, n]) => sum + Number(n), 0);
  };
  const [passed, failed, cancelled, skipped] = ['pass', 'fail', 'cancelled', 'skipped'].map(count);
  if (passed == null || failed == null || cancelled == null || skipped == null) return null;
  const lines = text.split('\n');
  const failures = lines.flatMap((line, index) => {
    const name = readFailure(line);
    return name === null ? [] : [withFile(name, lines.slice(index + 1, index + 8))];
  });
  const skips = lines.flatMap((line) => {
    const [, , said = ''] = resultLine.exec(line) ?? [];
    const reason = skipMark.exec(said)?.[1];
    return reason === undefined ? [] : [`${said.replace(skipMark, '')}: ${reason}`];
  });
  return { passed, failed: failed + cancelled, skipped, failures, skips };
}

function withFile(name: string, details: readonly string[]): string {
  const location = details.map((line) => /location: '.*\/dist\/(.*?)\.js:/.exec(line)?.[1]);
  const file = location.find((path) => path !== undefined);
  return file === undefined ? name : `${name} (${file}.ts)`;
}
