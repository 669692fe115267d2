// Loads the named statements of a section from its directory.
import { readdirSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { decodeText, readRegularFile } from '../config/regular-file.ts';
import { parseFile, type SectionFacts } from './parse-file.ts';
import type { NamedFault, NamedStatement } from './statement.ts';

/** The result of reading a directory. It is used only as a whole: if there is no fault. */
export type LoadedStatements = {
  /** In the order of their names. With faults, those of the files that are sound, of which --check may find further faults. */
  readonly statements: readonly NamedStatement[];
  /** Their files have the directory before their names. */
  readonly faults: readonly NamedFault[];
};

/** Reads all `*.sql` directly in the directory. Hidden files and other names are left alone. Never throws. */
export function loadStatements(directory: string, section: SectionFacts): LoadedStatements {
  const names = listFiles(directory);
  if (typeof names === 'string') {
    return { statements: [], faults: [{ file: directory, line: null, problem: names }] };
  }
  const faults: NamedFault[] = [];
  const fault = (file: string, line: number | null, problem: string) =>
    faults.push({ file, line, problem });
  if (mayOthersWrite(statSync(directory))) {
    fault(directory, null, 'is a directory that others may write to (chmod o-w)');
  }
  const statements = new Map<string, NamedStatement>();
  for (const name of names) {
    const file = join(directory, name);
    const read = readText(file);
    for (const { line, problem } of read.faults) fault(file, line, problem);
    if (read.text === null) continue;
    const parsed = parseFile(read.text, name, section);
    if (!parsed.ok) {
      for (const { line, problem } of parsed.faults) fault(file, line, problem);
      continue;
    }
    for (const statement of parsed.statements) {
      const first = statements.get(statement.name);
      if (first === undefined) statements.set(statement.name, statement);
      else {
        const problem = `\`${statement.name}\` is already in line ${first.line} of ${first.file}`;
        fault(file, statement.line, problem);
      }
    }
  }
  const sorted = [...statements.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  return { statements: Object.freeze(sorted), faults };
}

/** The files in order, or why they cannot be listed. */
function listFiles(directory: string): readonly string[] | string {
  try {
    return readdirSync(directory)
      .filter((name) => name.endsWith('.sql') && !name.startsWith('.'))
      .sort();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return `is no directory that can be read (${code ?? message})`;
  }
}

function mayOthersWrite({ mode }: Stats): boolean {
  return (mode & 0o002) !== 0;
}

type ReadFile = {
  /** Null: it cannot be parsed. */
  readonly text: string | null;
  readonly faults: readonly { readonly line: number | null; readonly problem: string }[];
};

function readText(file: string): ReadFile {
  try {
    const { bytes, stats } = readRegularFile(file);
    const problem = mayOthersWrite(stats) ? 'may be written by others (chmod o-w)' : null;
    const faults = problem === null ? [] : [{ line: null, problem }];
    const text = decodeText(bytes);
    if (text !== null) return { text, faults };
    return { text, faults: [...faults, { line: firstBadLine(bytes), problem: 'is not UTF-8' }] };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { text: null, faults: [{ line: null, problem: `cannot be read (${code ?? message})` }] };
  }
}

/** The first line that is not UTF-8: no character of UTF-8 contains the byte of a line feed. */
function firstBadLine(bytes: Buffer): number {
  let from = 0;
  for (let line = 1; ; line += 1) {
    const end = bytes.indexOf(0x0a, from);
    if (end < 0 || decodeText(bytes.subarray(from, end)) === null) return line;
    from = end + 1;
  }
}
