// --types: reads the named statements, asks a server about their columns, and prints a TypeScript module. Starts nothing.
import type { Sections } from '../../shared/config/config.ts';
import type { Environment, Target } from '../../shared/config/load-config.ts';
import { findNamedFaults, parseDirectories } from '../../shared/named/load-sections.ts';
import { type ExitCode, exitCodes } from '../../shared/process/exit-codes.ts';
import { examineDatabases } from '../check/databases.ts';
import { askNamed, describeNamedFaults } from '../check/named.ts';
import { type Finding, fault, placeOf } from '../check/report.ts';
import { openSections, printFaults } from './sections.ts';
import { type TypedStatement, writeTypes } from './typescript.ts';

/** Prints the module on stdout; or every fault on stderr, and nothing on stdout. Returns the first fault's exit status, or 0. */
export async function printTypes(target: Target, env: Environment): Promise<ExitCode> {
  process.stdout.on('error', () => {});
  const opened = openSections(target, env);
  if (!opened.ok) return printFaults(opened.findings);
  const { sections } = opened;
  if (sections.every(({ named }) => named === null)) {
    const place = placeOf(sections[0], 'named');
    return printFaults([
      fault(exitCodes.configInvalid, place, 'is not set: there are no statements'),
    ]);
  }
  const { statements, findings } = await findStatements(sections);
  if (findings.some(({ severity }) => severity === 'fault')) return printFaults(findings);
  process.stdout.write(writeTypes(statements));
  return exitCodes.ok;
}

/** The statements of all sections as servers describe them, and what is wrong with them. */
async function findStatements(sections: Sections): Promise<{
  readonly statements: readonly TypedStatement[];
  readonly findings: readonly Finding[];
}> {
  const parsed = parseDirectories(sections);
  const namedFaults = findNamedFaults(parsed, sections[0].access?.clients ?? null);
  const named = sections.filter(({ named: directory }) => directory !== null);
  const databases = await examineDatabases(sections);
  const asked = await askNamed(sections, parsed.sections, databases.holders);
  // Other faults of a server are those of a gateway, and change no type.
  const unreached = databases.findings.filter(
    (one) =>
      one.severity === 'fault' &&
      one.exitCode === exitCodes.unavailable &&
      named.some(({ section }) => section === one.section),
  );
  const statements = asked.flatMap(({ section, statements: own, described, enums }) => {
    const config = sections.find((one) => one.section === section);
    const hasKeys = config !== undefined && config.idempotencyTable !== null;
    return own.flatMap((statement, at): readonly TypedStatement[] => {
      const one = described?.[at];
      return one === undefined ? [] : [{ statement, described: one, enums, hasKeys }];
    });
  });
  return {
    statements,
    findings: [
      ...describeNamedFaults(namedFaults),
      ...unreached,
      ...asked.flatMap(({ findings }) => findings),
    ],
  };
}
