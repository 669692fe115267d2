// Makes a system package: writes its files into a folder, with modes and times that depend on the sources only, and runs the packer.
import {
  chmodSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { readProjectFacts } from '../support/project-facts.ts';
import type { Effort } from './contents.ts';
import { packDeb } from './deb.ts';
import { listFiles, type PackagedFile, type PackageKind } from './files.ts';
import { packRpm } from './rpm.ts';

/** A package to make, and the folder for it. */
export type Order = {
  readonly kind: PackageKind;
  /** Counts packages of the same version. */
  readonly revision: number;
  readonly out: string;
  readonly effort: Effort;
  /** Other files than all of the form's, for tests. */
  readonly files?: readonly PackagedFile[];
};

/** Makes a package of the build in this checkout: the same bytes from the same sources. Returns its path. Throws if the packer fails. */
export function makePackage({
  kind,
  revision,
  out,
  effort,
  files = listFiles(kind),
}: Order): string {
  const { version, license } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    version: string;
    license: string;
  };
  const { maintainer, repository } = readProjectFacts();
  const epochSeconds = readEpoch(version);
  const work = mkdtempSync(join(tmpdir(), 'dbhttpd-packaging-'));
  try {
    const root = join(work, 'root');
    writeFiles(root, files, epochSeconds);
    mkdirSync(out, { recursive: true });
    const pack = kind === 'deb' ? packDeb : packRpm;
    return pack({
      work,
      root,
      files,
      out: resolve(out),
      // In both forms, a tilde sorts before the release.
      version: version.replace('-', '~'),
      revision,
      epochSeconds,
      license,
      maintainer,
      repository,
      effort,
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The time of all files, in seconds: SOURCE_DATE_EPOCH, or the day of the version in CHANGELOG.md. Throws if there is neither. */
export function readEpoch(version: string): number {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given !== undefined) return Number(given);
  const heading = new RegExp(
    `^## ${version.replaceAll('.', '\\.')} - (\\d{4}-\\d\\d-\\d\\d)$`,
    'm',
  );
  const [, day] = heading.exec(readFileSync('CHANGELOG.md', 'utf8')) ?? [];
  if (day === undefined) {
    throw new Error(`CHANGELOG.md has no day for ${version}: set SOURCE_DATE_EPOCH`);
  }
  return Date.parse(`${day}T00:00:00Z`) / 1000;
}

function writeFiles(root: string, files: readonly PackagedFile[], epochSeconds: number): void {
  const folders = new Set<string>([root]);
  for (const entry of files) {
    const path = join(root, entry.path);
    for (let folder = dirname(path); !folders.has(folder); folder = dirname(folder)) {
      folders.add(folder);
    }
    mkdirSync(dirname(path), { recursive: true });
    if ('link' in entry) {
      symlinkSync(entry.link, path);
      lutimesSync(path, epochSeconds, epochSeconds);
    } else {
      writeFileSync(path, entry.content);
      chmodSync(path, entry.mode);
      utimesSync(path, epochSeconds, epochSeconds);
    }
  }
  for (const folder of folders) {
    chmodSync(folder, 0o755);
    utimesSync(folder, epochSeconds, epochSeconds);
  }
}
