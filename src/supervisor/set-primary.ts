// --primary: an operator names the primary once. The command sends it to the running instance, or else writes the file. It asks the server
// only for its identity, decides nothing, and prints what it has set.
import { dirname } from 'node:path';
import { type Candidate, formatCandidate, parseHosts } from '../shared/config/addresses.ts';
import type { Config, Sections } from '../shared/config/config.ts';
import {
  type Environment,
  formatFault,
  loadConfig,
  type Target,
} from '../shared/config/load-config.ts';
import { currentPlace, makeDefaultDirectory } from '../shared/config/machine-defaults.ts';
import { type ExitCode, exitCodes } from '../shared/process/exit-codes.ts';
import { escapeControl } from '../shared/process/log.ts';
import { describePrimary, overridePrimary } from '../shared/servers/primary-memory.ts';
import type { ServerView } from '../shared/servers/server-view.ts';
import { askViewAgain } from './check/databases.ts';
import { claimInstance } from './claim/claim.ts';
import { orderHolder } from './claim/phase-socket.ts';
import { primaryFilePath, readPrimaryFile, replacePrimaryFile } from './primary/primary-file.ts';
import {
  type ChangeResult,
  describeChange,
  formatOrder,
  type PrimaryChange,
  parseOrderResult,
} from './primary/primary-order.ts';

/** A section that has the server among several, and the server's view of itself. */
type Choice = { readonly config: Config; readonly address: string; readonly view: ServerView };

/** Why nothing was set. */
type Failure = { readonly exitCode: ExitCode; readonly problem: string };

/** The results of a change, and their place. */
type Done = { readonly results: readonly ChangeResult[]; readonly isRunning: boolean };

const maxAttempts = 2;

/**
 * Makes a server the remembered primary of each section that has it among several. Prints the result on stdout, or the reason of a
 * failure on stderr. Returns the exit status.
 */
export async function setPrimary(
  target: Target & { readonly address: string },
  env: Environment,
): Promise<ExitCode> {
  process.stdout.on('error', () => {});
  const loaded = loadConfig(target, env, currentPlace());
  if (loaded.kind === 'unreadable') {
    return fail([{ exitCode: exitCodes.configUnreadable, problem: loaded.reason }]);
  }
  if (loaded.kind === 'invalid') {
    const exitCode = exitCodes.configInvalid;
    return fail(loaded.faults.map((fault) => ({ exitCode, problem: formatFault(fault) })));
  }
  const choices = await choose(loaded.sections, target.address);
  if ('problem' in choices) return fail([choices]);
  const done = await apply(loaded.sections[0], choices);
  if ('problem' in done) return fail([done]);
  print(choices, done);
  return exitCodes.ok;
}

function fail(failures: readonly Failure[]): ExitCode {
  for (const { problem } of failures) process.stderr.write(`dbhttpd: ${escapeControl(problem)}\n`);
  return failures[0]?.exitCode ?? exitCodes.ok;
}

/** Chooses all sections that have the server, because replication concerns a whole server and not one database. */
async function choose(sections: Sections, address: string): Promise<readonly Choice[] | Failure> {
  const found = sections
    .filter(({ candidates }) => candidates.length > 1)
    .flatMap((config) => {
      const candidate = findCandidate(config, address);
      return candidate === undefined ? [] : [{ config, candidate }];
    });
  if (found.length === 0) {
    const servers = sections.map(describeServers).join('; ');
    const problem = `no section has several servers with ${address} among them: ${servers}`;
    return { exitCode: exitCodes.configInvalid, problem };
  }
  const choices: Choice[] = [];
  for (const { config, candidate } of found) {
    const where = formatCandidate(candidate);
    const asked = await askViewAgain(config, candidate);
    if (!asked.ok) {
      const problem = `nothing is set, because ${where} could not be asked (${asked.failure.reason})`;
      return { exitCode: exitCodes.unavailable, problem };
    }
    if (asked.facts.galera !== null || asked.facts.group !== null) {
      const problem = `nothing is set, because ${where} belongs to a cluster, which knows its primary by itself`;
      return { exitCode: exitCodes.configInvalid, problem };
    }
    choices.push({ config, address: where, view: asked.facts });
  }
  return choices;
}

function describeServers({ section, candidates }: Config): string {
  return `[${section}] ${candidates.map(formatCandidate).join(', ')}`;
}

/** The port may be left out if the host is listed once. */
function findCandidate({ candidates }: Config, address: string): Candidate | undefined {
  const wanted = address.toLowerCase();
  const exact = candidates.find((one) => formatCandidate(one).toLowerCase() === wanted);
  if (exact !== undefined) return exact;
  const items = parseHosts(wanted);
  const [item] = typeof items === 'string' ? [] : items;
  if (item === undefined || items.length > 1 || item.port !== null) return undefined;
  const named = candidates.filter(
    ({ host, socket }) => socket === null && host.toLowerCase() === item.host,
  );
  return named.length === 1 ? named[0] : undefined;
}

/** Has the running instance set it. If none runs, sets it in the files, while the claim keeps an instance from starting. */
async function apply(instance: Config, choices: readonly Choice[]): Promise<Done | Failure> {
  const { pidfile } = instance;
  const order = formatOrder(choices.map(changeOf));
  let reason = '';
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const claimed = await claim(pidfile);
    if ('problem' in claimed) return claimed;
    if (claimed.kind === 'held') {
      try {
        return await writeFiles(choices);
      } finally {
        claimed.claim.close();
      }
    }
    reason = claimed.reason;
    const answer = await orderHolder(pidfile, order);
    const result = answer === null ? null : parseOrderResult(answer);
    if (result?.kind === 'set') return { results: result.results, isRunning: true };
    if (result?.kind === 'refused') {
      const problem = `the running instance refuses: ${result.problem}`;
      return { exitCode: exitCodes.configInvalid, problem };
    }
  }
  const problem = `the instance of ${pidfile} takes no orders: ${reason}`;
  return { exitCode: exitCodes.alreadyRunning, problem };
}

async function claim(pidfile: string) {
  try {
    makeDefaultDirectory(dirname(pidfile), currentPlace());
    return await claimInstance(pidfile);
  } catch (error) {
    const reason = (error as Error).message;
    const problem = `cannot find out whether an instance of ${pidfile} runs: ${reason}`;
    return { exitCode: exitCodes.cannotCreate, problem };
  }
}

async function writeFiles(choices: readonly Choice[]): Promise<Done | Failure> {
  const results: ChangeResult[] = [];
  for (const choice of choices) {
    const { section, primary } = changeOf(choice);
    const path = primaryFilePath(choice.config);
    const content = readPrimaryFile(path);
    const before = content.kind === 'memory' ? content.memory : null;
    const memory = overridePrimary(before, primary);
    try {
      await replacePrimaryFile(path, memory, () => true);
    } catch (error) {
      const problem = `cannot write ${path}: ${(error as Error).message}`;
      return { exitCode: exitCodes.cannotCreate, problem };
    }
    results.push(describeChange(section, { before, memory, isSaved: true }));
  }
  return { results, isRunning: false };
}

function changeOf({ config, address, view }: Choice): PrimaryChange {
  return { section: config.section, primary: describePrimary(address, view) };
}

function print(choices: readonly Choice[], { results, isRunning }: Done): void {
  for (const [at, { config, address, view }] of choices.entries()) {
    const { before = null, isSaved = true } = results[at] ?? {};
    const lines = [
      `primary: ${address} (${view.version}, server_id ${view.number})`,
      `before: ${before ?? 'none was remembered'}`,
      isRunning
        ? 'the running instance uses it from now on'
        : `no instance runs: the next start reads it from ${primaryFilePath(config)}`,
      ...warningsOf(view, isSaved).map((warning) => `warning: ${warning}`),
    ];
    for (const line of lines) {
      process.stdout.write(`${escapeControl(`[${config.section}] ${line}`)}\n`);
    }
  }
}

function warningsOf({ isReadOnly, following }: ServerView, isSaved: boolean): readonly string[] {
  const found: string[] = [];
  if (isReadOnly) found.push('the server is read-only, and takes no writes until you change that');
  if (following.kind === 'listed') {
    found.push('the server follows another one, and takes no writes until you end that');
  }
  if (!isSaved)
    found.push('the memory cannot be saved, and is lost when the running instance ends');
  return found;
}
