// Loads the named statements of a section from its directory.
import { readdirSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { decodeText, readRegularFile } from '../config/regular-file.ts';
import { parseFile, type SectionFacts } from './parse-file.ts';
import type { NamedFault, NamedHead, NamedStatement } from './statement.ts';

/** The result of reading a directory. It is used only as a whole: if there is no fault. */
export type LoadedStatements = {
  /** In the order of their names. With faults, those of the files that are sound, of which --check may find further faults. */
  readonly statements: readonly NamedStatement[];
  /** All statements that have a name, those of faulty files included. */
  readonly heads: readonly NamedHead[];
  /** Their files have the directory before their names. */
  readonly faults: readonly NamedFault[];
};

/** Reads all `*.sql` directly in the directory. Hidden files and other names are left alone. Never throws. */
export function loadStatements(directory: string, section: SectionFacts): LoadedStatements {
  const names = listFiles(directory);
  if (typeof names === 'string') {
    const faults = [{ file: directory, line: null, problem: names }];
    return { statements: [], heads: [], faults };
  }
  const faults: NamedFault[] = [];
  if (mayOthersWrite(statSync(directory))) {
    const problem = 'is a directory that others may write to (chmod o-w)';
    faults.push({ file: directory, line: null, problem });
  }
  const heads = new Map<string, NamedHead>();
  const statements = new Map<string, NamedStatement>();
  const repeated: NamedHead[] = [];
  for (const name of names) {
    const file = join(directory, name);
    const read = readText(file);
    const found = [...read.faults];
    if (read.text !== null) {
      const parsed = parseFile(read.text, name, section);
      if (!parsed.ok) found.push(...parsed.faults);
      for (const head of parsed.ok ? parsed.statements : parsed.heads) {
        const first = heads.get(head.name);
        if (first === undefined) heads.set(head.name, head);
        else {
          repeated.push(head);
          found.push({ line: head.line, problem: describeRepetition(head, first) });
        }
      }
      for (const statement of parsed.ok ? parsed.statements : []) {
        if (!statements.has(statement.name)) statements.set(statement.name, statement);
      }
    }
    found.sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
    faults.push(...found.map(({ line, problem }) => ({ file, line, problem })));
  }
  const sorted = [...statements.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  return { statements: Object.freeze(sorted), heads: [...heads.values(), ...repeated], faults };
}

function describeRepetition({ name }: NamedHead, { file, line }: NamedHead): string {
  return `\`${name}\` is already in line ${line} of ${file}`;
}

/** The files in order, or why they cannot be listed. */
function listFiles(directory: string): readonly string[] | string {
  try {
    return readdirSync(directory)
      .filter((name) => name.endsWith('.sql') && !name.startsWith('.'))
      .sort();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return `is not a directory that can be read (${code ?? message})`;
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
