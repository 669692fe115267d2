// Unit test files that share a process: a start of Node costs more than most of them need.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { compiled } from './test-files.ts';

/** Test files of one process, by the name of their folder. */
export type UnitGroup = { readonly name: string; readonly files: readonly string[] };

/** Which of a run's files share a process, and which have one of their own. */
export type Division = { readonly groups: readonly UnitGroup[]; readonly alone: readonly string[] };

/**
 * Signs of a file that changes its process, starts others, or measures itself. Hooks are among them, because they would run around the tests
 * of all files.
 */
const signs = [
  /^(?:before|after)(?:Each)?\(/m,
  /\bmock\b/,
  /\bglobalThis\b/,
  /\b(?:performance|Date|Math)\.\w+ = /,
  /\bprocess\.(?!execPath\b|pid\b|cwd\b)/,
  /\bnode:(?:child_process|cluster|v8|vm|worker_threads)\b/,
];

/** Whether a test file with this text needs a process of its own. */
export function needsOwnProcess(text: string): boolean {
  return signs.some((sign) => sign.test(text));
}

/** Divides the files of a run. Files of behaviour are alone, because each has its own gateway. */
export function divide(files: readonly string[]): Division {
  const mayShare = (path: string) =>
    path.startsWith('test/unit/') && !needsOwnProcess(readFileSync(path, 'utf8'));
  const byName = new Map<string, string[]>();
  for (const path of files.filter(mayShare)) {
    const name = groupOf(path);
    byName.set(name, [...(byName.get(name) ?? []), path]);
  }
  const groups = [...byName]
    .filter(([, members]) => members.length > 1)
    .map(([name, members]) => ({ name, files: members }));
  const grouped = new Set(groups.flatMap((group) => group.files));
  return { groups, alone: files.filter((path) => !grouped.has(path)) };
}

/** The two folders below test/unit, as in `shared-sql`. */
function groupOf(path: string): string {
  const [, , ...folders] = path.split('/').slice(0, -1);
  return folders.slice(0, 2).join('-');
}

/** Writes a module for each group, which loads its files. Returns the paths of the modules. */
export function writeGroups(groups: readonly UnitGroup[]): readonly string[] {
  const directory = resolve('dist/test/groups');
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  return groups.map(({ name, files }) => {
    const path = join(directory, `${name}.test.js`);
    const loader = JSON.stringify(resolve(import.meta.dirname, 'load-group.js'));
    const paths = JSON.stringify(files.map(compiled));
    writeFileSync(path, `import { loadGroup } from ${loader};\nawait loadGroup(${paths});\n`);
    return path;
  });
}
