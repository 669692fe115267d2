// --check: everything a start would look at, told to a person; nothing is started.
// Must not know how an instance is run.
import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import { formatListenAddress } from '../../shared/config/addresses.ts';
import type { Config, Sections } from '../../shared/config/config.ts';
import { describeConfig } from '../../shared/config/describe.ts';
import {
  type Environment,
  type Fault,
  formatFault,
  loadConfig,
  type Target,
} from '../../shared/config/load-config.ts';
import { currentPlace, runDirectory } from '../../shared/config/machine-defaults.ts';
import { describeCreation } from '../../shared/idempotency-table.ts';
import { type ExitCode, exitCodes } from '../../shared/process/exit-codes.ts';
import { findObstacle } from '../../shared/process/line-writer.ts';
import { escapeControl } from '../../shared/process/log.ts';
import { holderOf } from '../claim.ts';
import { bindListener, isTaken } from '../listener.ts';
import { primaryFilePath } from '../primary/primary-file.ts';
import { checkDatabases, type Finding, ledgerOf } from './check-databases.ts';

/** Prints the effective settings on stdout and every fault on stderr; the first fault's exit status, or 0. */
export async function check(target: Target, env: Environment): Promise<ExitCode> {
  // A reader that closes its end early (`| head`) is no fault of the configuration.
  process.stdout.on('error', () => {});
  const loaded = loadConfig(target, env, currentPlace());
  if (loaded.kind === 'unreadable') {
    return conclude([{ exitCode: exitCodes.configUnreadable, problem: loaded.reason }]);
  }
  if (loaded.kind === 'invalid') {
    return conclude(findFaults(loaded.faults));
  }
  const { sections } = loaded;
  const [config] = sections;
  for (const section of sections) {
    print(`[${section.section}] of ${section.configPath}`);
    for (const line of describeConfig(section)) print(`  ${line}`);
  }
  const findings = [
    ...findFaults(loaded.warnings),
    ...findUncreatable(config),
    ...(await findUnbindable(config)),
  ];
  const databases = await checkDatabases(sections);
  for (const line of databases.lines) print(line);
  for (const line of findForgetful(sections)) print(line);
  printCreations(sections);
  return conclude([...findings, ...databases.findings]);
}

function findFaults(faults: readonly Fault[]): readonly Finding[] {
  const exitCode = exitCodes.configInvalid;
  return faults.map((fault) => ({ exitCode, problem: formatFault(fault) }));
}

function print(line: string): void {
  process.stdout.write(`${escapeControl(line)}\n`);
}

/** Between empty lines and from the first column on, so that it can be cut out: docs/exactly-once.md says how. */
function printCreations(sections: Sections): void {
  const tables = sections.map(ledgerOf).filter((table) => table !== null);
  for (const statement of new Set(tables.map(describeCreation))) {
    for (const line of ['', ...statement.split('\n')]) print(line);
  }
}

function conclude(findings: readonly Finding[]): ExitCode {
  for (const { problem } of findings) process.stderr.write(`dbhttpd: ${escapeControl(problem)}\n`);
  return findings[0]?.exitCode ?? exitCodes.ok;
}

/** A start lives with it: what is remembered of the primary ends with the instance then. */
function findForgetful(sections: Sections): readonly string[] {
  return sections.flatMap((config) => {
    if (config.candidates.length === 1) return [];
    const path = primaryFilePath(config);
    const reason = whyNotCreatable(path, true);
    return reason === null ? [] : [`warning: cannot keep the last primary in ${path}: ${reason}`];
  });
}

function findUncreatable(config: Config): readonly Finding[] {
  const exitCode = exitCodes.cannotCreate;
  return (['pidfile', 'log'] as const).flatMap((key) => {
    const path = config[key];
    const mayMakeDirectory = key === 'log' || dirname(path) === runDirectory(currentPlace());
    const obstacle = key === 'log' ? findObstacle(path) : null;
    const reason = obstacle ?? whyNotCreatable(path, mayMakeDirectory);
    return reason === null
      ? []
      : [{ exitCode, problem: `cannot create the ${key} ${path}: ${reason}` }];
  });
}

/** Missing directories are made by a start for a log and for a default path, not for a pidfile that is set. */
function whyNotCreatable(path: string, mayMakeDirectory: boolean): string | null {
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

async function findUnbindable(config: Config): Promise<readonly Finding[]> {
  const holder = await findHolder(config);
  if (holder !== null) {
    print(`instance: ${holder}`);
    return [];
  }
  // Binding a socket's path would replace the name: it is only looked at.
  if (config.listen.kind === 'unix') {
    const { path } = config.listen;
    const reason = (await isTaken(path)) ? 'EADDRINUSE' : whyNotCreatable(path, false);
    const problem = `cannot listen on ${path}: ${reason}`;
    return reason === null ? [] : [{ exitCode: exitCodes.unavailable, problem }];
  }
  const bound = await bindListener(config.listen, config.listenMode);
  if (bound.ok) {
    bound.listener.close();
    return [];
  }
  const problem = `cannot listen on ${formatListenAddress(config.listen)}: ${bound.reason}`;
  return [{ exitCode: exitCodes.unavailable, problem }];
}

async function findHolder(config: Config): Promise<string | null> {
  try {
    return await holderOf(config.pidfile);
  } catch {
    // The pidfile's directory is missing, which is reported as such: nobody can hold the claim.
    return null;
  }
}
