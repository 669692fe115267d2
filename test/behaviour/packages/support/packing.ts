// Packs a package as npm publishes it, and installs it as a user does, without a network.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** A command that has ended. */
export type Ended = { readonly status: number; readonly stdout: string; readonly stderr: string };

/** Runs a command in a folder, and resolves to what it printed, whatever its exit status. */
export async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Ended> {
  try {
    const { stdout, stderr } = await execute(command, [...args], { cwd, env, maxBuffer: 2 ** 26 });
    return { status: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string };
    if (typeof code !== 'number') throw error;
    return { status: code, stdout, stderr };
  }
}

/** One file of a tarball. */
export type PackedFile = { readonly path: string; readonly size: number };

/** A tarball, with its files and its size in bytes. */
export type Tarball = {
  readonly path: string;
  readonly bytes: number;
  readonly files: readonly PackedFile[];
};

/** Packs the package in a folder, without its scripts: the build is there already. */
export async function pack(folder: string, destination: string): Promise<Tarball> {
  if (!existsSync(join(folder, 'package.json'))) throw new Error('run: npm run build');
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', destination];
  const { status, stdout, stderr } = await run('npm', args, folder);
  if (status !== 0) throw new Error(stderr);
  type Packed = { filename: string; size: number; files: readonly PackedFile[] };
  const parsed = JSON.parse(stdout) as readonly Packed[] | Readonly<Record<string, Packed>>;
  const [packed] = Object.values(parsed);
  if (packed === undefined) throw new Error(stdout);
  return { path: join(destination, packed.filename), bytes: packed.size, files: packed.files };
}

/** Makes an empty project in a new folder and installs a tarball that has no dependencies. */
export async function installInto(folder: string, tarball: string): Promise<void> {
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}\n');
  const args = ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', tarball];
  const { status, stderr } = await run('npm', args, folder);
  if (status !== 0) throw new Error(stderr);
}

/**
 * The findings of publint and of attw on a tarball: '' if there are none. A `require` of an ES module is no finding: the Nodes that the
 * packages need can do that.
 */
export async function lint(tarball: string): Promise<readonly string[]> {
  const linters = [
    ['publint', tarball, '--strict', '--level', 'suggestion'],
    ['attw', tarball, '--ignore-rules', 'cjs-resolves-to-esm', '--format', 'ascii', '--no-color'],
  ] as const;
  return await Promise.all(
    linters.map(async ([name, ...args]) => {
      const ended = await run(resolve('node_modules/.bin', name), args, resolve('.'));
      return ended.status === 0 ? '' : `${ended.stdout}${ended.stderr}`;
    }),
  );
}

/** The path of a program, on the PATH or among the packages here; null: it is not installed. */
export function findProgram(name: string): string | null {
  const folders = [resolve('node_modules/.bin'), ...(process.env.PATH ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}
