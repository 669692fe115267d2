// Loads the named statements of a section from its directory, and checks those of several sections against each other and the clients.
import { readdirSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clients } from '../clients/client.ts';
import { defaultClient } from '../clients/client.ts';
import { decodeText, readRegularFile } from '../config/regular-file.ts';
import { parseFile, type SectionFacts } from './parse-file.ts';
import type { NamedFault, NamedStatement } from './statement.ts';

/**
 * The statements of a section in the order of their names, or every fault. Files of faults have the directory before their names. `sound`:
 * the statements of the files without a fault, of which --check may find further ones.
 */
export type LoadedStatements =
  | { readonly ok: true; readonly statements: readonly NamedStatement[] }
  | {
      readonly ok: false;
      readonly faults: readonly NamedFault[];
      readonly sound: readonly NamedStatement[];
    };

/** Reads all `*.sql` directly in the directory. Hidden files and other names are left alone. Never throws. */
export function loadStatements(directory: string, section: SectionFacts): LoadedStatements {
  const faults: NamedFault[] = [];
  const fault = (file: string, line: number | null, problem: string) =>
    faults.push({ file, line, problem });
  const names = listFiles(directory);
  if (typeof names === 'string') {
    return { ok: false, faults: [{ file: directory, line: null, problem: names }], sound: [] };
  }
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
      else fault(file, statement.line, `\`${statement.name}\` is already in ${placeOf(first)}`);
    }
  }
  const sorted = [...statements.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  if (faults.length > 0) return { ok: false, faults, sound: sorted };
  return { ok: true, statements: Object.freeze(sorted) };
}

function placeOf({ file, line }: NamedStatement): string {
  return `line ${line} of ${file}`;
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

/** A section and its statements. */
export type SectionStatements = {
  readonly section: string;
  readonly directory: string;
  readonly statements: readonly NamedStatement[];
};

/**
 * Checks all that one section alone does not show: names are unique over all served sections, and every client exists.
 * @param clients null: none are configured, and there is only `default`
 */
export function findConflicts(
  sections: readonly SectionStatements[],
  clients: Clients | null,
): readonly NamedFault[] {
  const faults: NamedFault[] = [];
  const known = new Set([defaultClient.name, ...(clients?.clients ?? []).map(({ name }) => name)]);
  if (clients !== null && clients.anonymous !== null) known.add(clients.anonymous.name);
  const seen = new Map<string, { readonly section: string; readonly statement: NamedStatement }>();
  for (const { section, directory, statements } of sections) {
    for (const statement of statements) {
      const { name, line } = statement;
      const file = join(directory, statement.file);
      const first = seen.get(name);
      if (first === undefined) seen.set(name, { section, statement });
      else {
        const place = `${placeOf(first.statement)} of the section ${first.section}`;
        faults.push({ file, line, problem: `\`${name}\` is already in ${place}` });
      }
      for (const client of statement.for ?? []) {
        if (known.has(client)) continue;
        faults.push({
          file,
          line,
          problem: `\`-- for: …\` of \`${name}\`: there is no client \`${client}\``,
        });
      }
    }
  }
  return faults;
}
