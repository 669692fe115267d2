// The files of an instance as a check sees them: what a start could not create, open or replace.
import { accessSync, constants, existsSync, lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Config, Sections } from '../../shared/config/config.ts';
import { currentPlace, runDirectory } from '../../shared/config/machine-defaults.ts';
import { exitCodes } from '../../shared/process/exit-codes.ts';
import { findObstacle } from '../../shared/process/line-writer.ts';
import { claimLockOf } from '../claim/claim.ts';
import { findLockObstacle } from '../claim/file-lock.ts';
import { primaryFilePath } from '../primary/primary-file.ts';
import { commitMemoryOf } from '../workers/commit-memory.ts';
import { type Finding, fault, placeOf, warning } from './report.ts';

/** Warnings of files with which a start succeeds all the same, or of which only another user can say more. */
export function findFileWarnings(sections: Sections): readonly Finding[] {
  const [config] = sections;
  return [
    ...findUnwritableState(sections),
    ...findUnusableMemory(config),
    ...findForeignFiles(config),
  ];
}

/** A start succeeds without it, but the memory of the primary ends with the instance then. */
function findUnwritableState(sections: Sections): readonly Finding[] {
  return sections.flatMap((config) => {
    if (config.candidates.length === 1) return [];
    const path = primaryFilePath(config);
    const reason = whyNotCreatable(path, true);
    const message = `cannot keep the last primary in ${path}: ${reason}`;
    return reason === null ? [] : [warning(placeOf(config, 'state_dir'), message)];
  });
}

/** Faults of files that a start cannot open or create. */
export function findUncreatable(config: Config): readonly Finding[] {
  const { pidfile, log } = config;
  const reasons = { pidfile: whyNoPidfile(pidfile), log: whyNoLog(log) };
  return (['pidfile', 'log'] as const).flatMap((key) => {
    const reason = reasons[key];
    if (reason === null) return [];
    const message = `cannot create the ${key} ${config[key]}: ${reason}`;
    return [fault(exitCodes.cannotCreate, placeOf(config, key), message)];
  });
}

function whyNoLog(path: string): string | null {
  if (isLeftToItsOwner(path)) return null;
  return findObstacle(path) ?? (existsSync(path) ? null : whyNotCreatable(path, true));
}

function whyNoPidfile(path: string): string | null {
  return (
    whyNotReplaceable(path) ??
    whyNotCreatable(path, dirname(path) === runDirectory(currentPlace())) ??
    whyNotOpened(claimLockOf(path))
  );
}

function whyNotOpened(path: string): string | null {
  const reason = isLeftToItsOwner(path) ? null : findLockObstacle(path);
  return reason === null ? null : `cannot open ${path}: ${reason}`;
}

/** Root may check what another user starts: a file of that user is no obstacle to it. */
function isLeftToItsOwner(path: string): boolean {
  if (process.getuid?.() !== 0) return false;
  try {
    const stats = lstatSync(path);
    return stats.isFile() && stats.uid !== 0;
  } catch {
    // It is missing, or its path is faulty, which is reported as such.
    return false;
  }
}

/** Such a file stops a start by root itself. */
function findForeignFiles(config: Config): readonly Finding[] {
  const paths = { pidfile: claimLockOf(config.pidfile), log: config.log };
  return (['pidfile', 'log'] as const).flatMap((key) => {
    const path = paths[key];
    if (!isLeftToItsOwner(path)) return [];
    const message = `${path} belongs to user ${lstatSync(path).uid}: only that user can start the gateway`;
    return [warning(placeOf(config, key), message)];
  });
}

/** A start succeeds without it, but what an instance knows of COMMITs ends with it then. */
function findUnusableMemory(config: Config): readonly Finding[] {
  const reason = whyNotOpened(commitMemoryOf(config.pidfile));
  const message = `the outcome of COMMITs is not remembered beyond an instance: ${reason}`;
  return reason === null ? [] : [warning(placeOf(config, 'pidfile'), message)];
}

/** A pidfile is replaced by its name, which a directory does not allow. Other reasons are those of its directory. */
function whyNotReplaceable(path: string): string | null {
  try {
    return lstatSync(path).isDirectory() ? 'is a directory' : null;
  } catch {
    return null;
  }
}

/**
 * Why no file can be created at a path; null: one can be. A start makes missing directories for a log and for a default path, but not for a
 * configured pidfile.
 */
export function whyNotCreatable(path: string, mayMakeDirectory: boolean): string | null {
  const directory = dirname(path);
  try {
    accessSync(directory, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    const isMissing = reason === 'ENOENT' && directory !== path;
    return isMissing && mayMakeDirectory ? whyNotCreatable(directory, true) : reason;
  }
}
