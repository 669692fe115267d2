// --scaffold: reads a table from its server and prints statements for it that --check accepts. Starts nothing.
import { anonymousName, isAllowed } from '../../shared/clients/client.ts';
import { listClients } from '../../shared/config/access.ts';
import type { Candidate } from '../../shared/config/addresses.ts';
import type { Config } from '../../shared/config/config.ts';
import type { Environment, Target } from '../../shared/config/load-config.ts';
import { initStatements } from '../../shared/database/connection-settings.ts';
import { fetchEnumAnswers } from '../../shared/database/enum-values.ts';
import { describeStatements } from '../../shared/database/named-columns.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { parseFile } from '../../shared/named/parse-file.ts';
import { type ExitCode, exitCodes } from '../../shared/process/exit-codes.ts';
import { escapeControl } from '../../shared/process/log.ts';
import { type Asked, ask, maxDescribeMs, tryStatements } from '../check/ask.ts';
import { fault, placeOf } from '../check/report.ts';
import {
  type Scaffold,
  type ScaffoldFacts,
  writeScaffold,
  writeScaffoldHead,
} from './scaffold-sql.ts';
import { openSections, printFaults } from './sections.ts';
import { readTable } from './table.ts';

/**
 * Prints the statements on stdout, and on stderr those that the server refuses; or why there are none, on stderr. The table is one of the
 * first section's database. Returns the exit status.
 */
export async function printScaffold(
  target: Target & { readonly table: string },
  env: Environment,
): Promise<ExitCode> {
  process.stdout.on('error', () => {});
  const opened = openSections(target, env);
  if (!opened.ok) return printFaults(opened.findings);
  const [config] = opened.sections;
  const asked = await askFirst(config, async (connection) => {
    // init_sql may choose the role that has the rights.
    await tryStatements(connection, initStatements(config));
    const { readOnly, idempotencyTable } = config;
    const hasKeys = idempotencyTable !== null;
    const facts = { hasKeys, isReadOnly: readOnly, clients: callersIn(config) };
    return await composeScaffold(connection, facts, target.table);
  });
  if (!asked.ok) {
    const message = `no server can be asked: ${asked.failure.reason}`;
    return printFaults([fault(exitCodes.unavailable, placeOf(config, null), message)]);
  }
  if (asked.facts === null) {
    const message = `the database ${config.database} has no table ${target.table} that the account may read`;
    return printFaults([fault(exitCodes.configInvalid, placeOf(config, null), message)]);
  }
  const { head, accepted, refused } = asked.facts;
  for (const line of refused) process.stderr.write(`${escapeControl(`dbhttpd: ${line}`)}\n`);
  process.stdout.write(`${[head, ...accepted.map(({ text }) => text)].join('\n\n')}\n`);
  return exitCodes.ok;
}

/** The clients that may call named statements of a section. Null: there is no file of clients. */
function callersIn({ access, section, tokens }: Config): readonly string[] | null {
  if (access === null) return null;
  return listClients(tokens, access)
    .filter(({ sections }) => sections === null || sections.includes(section))
    .filter((client) => isAllowed(client, 'named') && client.name !== anonymousName)
    .map(({ name }) => name);
}

/** Asks the first server of a section that can be reached. */
async function askFirst<Facts>(
  config: Config,
  fetch: (connection: Connection) => Promise<Facts>,
): Promise<Asked<Facts>> {
  const [first, ...others]: readonly [Candidate, ...Candidate[]] = config.candidates;
  let asked = await ask(config, first, fetch, maxDescribeMs);
  for (const candidate of others) {
    if (asked.ok) break;
    asked = await ask(config, candidate, fetch, maxDescribeMs);
  }
  return asked;
}

/** The parts of a file. */
export type ComposedScaffold = {
  readonly head: string;
  readonly accepted: readonly Scaffold[];
  /** Why further statements are left out. */
  readonly refused: readonly string[];
};

/** Writes the statements for a table, and has the server try them. Null: there is no such table. */
export async function composeScaffold(
  connection: Connection,
  facts: ScaffoldFacts,
  name: string,
): Promise<ComposedScaffold | null> {
  const table = await readTable(connection, name);
  if (table === null) return null;
  const written = writeScaffold(table, facts);
  const text = written.map((one) => one.text).join('\n\n');
  const parsed = parseFile(text, name, { hasIdempotencyTable: facts.hasKeys });
  if (!parsed.ok) throw new Error(parsed.faults.map(({ problem }) => problem).join('; '));
  const enums = await fetchEnumAnswers(connection, parsed.statements);
  const described = await describeStatements(connection, parsed.statements, enums.valuesOf);
  const faults = described.map((one) => one.faults[0]?.problem ?? null);
  return {
    head: writeScaffoldHead(table, facts),
    accepted: written.filter((_, at) => faults[at] === null),
    refused: faults.flatMap((problem) => (problem === null ? [] : [`left out: ${problem}`])),
  };
}
