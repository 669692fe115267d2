// --check: everything a start would look at, told to a person; nothing is started.
// Must not know how an instance is run.
import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import {
  describeCreation,
  type LedgerTable,
  parseLedgerTable,
} from '../shared/ledger/ledger-table.ts';
import { type ExitCode, exitCodes } from '../shared/process/exit-codes.ts';
import { findObstacle } from '../shared/process/line-writer.ts';
import { escapeControl } from '../shared/process/log.ts';
import type { Config } from '../shared/settings/config.ts';
import {
  type Environment,
  type Fault,
  formatFault,
  loadConfig,
} from '../shared/settings/config-file.ts';
import { currentPlace, runDirectory } from '../shared/settings/default-paths.ts';
import { describeConfig } from '../shared/settings/describe.ts';
import { formatListenAddress } from '../shared/settings/listen-address.ts';
import type { Target } from './arguments.ts';
import { holderOf } from './claim.ts';
import { bindListener, isTaken } from './listener.ts';
import { askServer, type ServerFacts, type Unanswered } from './server-facts.ts';

type Finding = { readonly exitCode: ExitCode; readonly problem: string };

/** Prints the effective settings on stdout and every fault on stderr; the first fault's exit status, or 0. */
export async function check(target: Target, env: Environment): Promise<ExitCode> {
  // A reader that closes its end early (`| head`) is no fault of the configuration.
  process.stdout.on('error', () => {});
  const loaded = loadConfig(target.configPath, target.section, env, currentPlace());
  if (loaded.kind === 'unreadable') {
    return conclude([{ exitCode: exitCodes.configUnreadable, problem: loaded.reason }]);
  }
  if (loaded.kind === 'invalid') {
    return conclude(findFaults(loaded.faults));
  }
  const { config } = loaded;
  print(`[${config.section}] of ${config.configPath}`);
  for (const line of describeConfig(config)) print(`  ${line}`);
  const { idempotencyTable, database } = config;
  const ledger = idempotencyTable === null ? null : parseLedgerTable(idempotencyTable, database);
  const findings = [
    ...findFaults(loaded.warnings),
    ...findUncreatable(config),
    ...(await findUnbindable(config)),
    ...(await findDatabase(config, ledger)),
  ];
  if (ledger !== null) printCreation(ledger);
  return conclude(findings);
}

function findFaults(faults: readonly Fault[]): readonly Finding[] {
  const exitCode = exitCodes.configInvalid;
  return faults.map((fault) => ({ exitCode, problem: formatFault(fault) }));
}

function print(line: string): void {
  process.stdout.write(`${escapeControl(line)}\n`);
}

/** Between empty lines and from the first column on, so that it can be cut out: docs/exactly-once.md says how. */
function printCreation(ledger: LedgerTable): void {
  for (const line of ['', ...describeCreation(ledger).split('\n')]) print(line);
}

function conclude(findings: readonly Finding[]): ExitCode {
  for (const { problem } of findings) process.stderr.write(`dbhttpd: ${escapeControl(problem)}\n`);
  return findings[0]?.exitCode ?? exitCodes.ok;
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

async function findDatabase(
  config: Config,
  ledger: LedgerTable | null,
): Promise<readonly Finding[]> {
  const asked = await askServer(config, ledger);
  if (!asked.ok) {
    return [{ exitCode: exitCodes.unavailable, problem: describeFailure(config, asked) }];
  }
  for (const line of describeServer(config, asked.facts)) print(line);
  const { initSqlProblem, ledger: facts } = asked.facts;
  const problems = [
    ...(initSqlProblem === null ? [] : [`init_sql is refused by the server: ${initSqlProblem}`]),
    ...(facts?.faults ?? []).map((fault) => `idempotency_table ${ledger?.quoted}: ${fault}`),
  ];
  return problems.map((problem) => ({ exitCode: exitCodes.configInvalid, problem }));
}

function describeFailure(config: Config, { failure }: Unanswered): string {
  const { kind, errno, reason } = failure;
  const where = config.socket ?? `${config.host}:${config.port}`;
  switch (kind) {
    case 'refused':
      return `database ${where} refuses the account ${config.user}: ${reason} (${errno})`;
    case 'unusable':
    case 'tls':
      return `database ${where}: ${reason}`;
    case 'silent':
    case 'unreachable':
      return `database unreachable: ${where}: ${reason}`;
    default:
      return kind satisfies never;
  }
}

/** The server and the connection budget, in lines. */
function describeServer(config: Config, facts: ServerFacts): readonly string[] {
  const needed = config.workers * (config.pool + 2);
  // Idle connections and probes close as the old instance begins to drain.
  const overlap = config.workers * (config.pool + 1);
  return [
    '',
    `server: ${facts.flavour} ${facts.version}`,
    `connections: ${config.workers} workers x (${config.pool} pool + 1 control + 1 probe) = ${needed}` +
      ` of max_connections ${facts.maxConnections}${ownLimit(facts)}`,
    `restart: up to ${overlap} more while an old instance finishes what is in flight = ${needed + overlap}`,
    ...[...facts.blindSpots, ...(facts.ledger?.warnings ?? [])].map((spot) => `warning: ${spot}`),
    ...warnOf('the server', facts.maxConnections, needed, overlap),
    ...warnOf('the account', facts.maxUserConnections, needed, overlap),
  ];
}

function ownLimit({ maxUserConnections: most }: ServerFacts): string {
  return most === null ? '' : ` and the account's max_user_connections ${most}`;
}

function warnOf(
  whose: string,
  most: number | null,
  needed: number,
  overlap: number,
): readonly string[] {
  if (most === null || needed + overlap <= most) return [];
  return needed > most
    ? [`warning: ${whose} does not admit that many connections: lower workers or pool`]
    : [`warning: ${whose} may not admit what a restart under load needs`];
}
