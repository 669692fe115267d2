// The named statements of --check: their files are parsed, every statement is prepared on a server, and a table shows what there is.
import { type Client, defaultClient, isAllowed } from '../../shared/clients/client.ts';
import type { Candidate } from '../../shared/config/addresses.ts';
import type { Config, Sections } from '../../shared/config/config.ts';
import { initStatements } from '../../shared/database/connection-settings.ts';
import {
  type EnumAnswer,
  EnumAnswers,
  fetchEnumAnswers,
  listEnumColumns,
} from '../../shared/database/enum-values.ts';
import {
  type DescribedStatement,
  describeStatements,
  type NamedColumn,
} from '../../shared/database/named-columns.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import type { SectionStatements } from '../../shared/named/load-sections.ts';
import type { NamedFault, NamedStatement, Parameter } from '../../shared/named/statement.ts';
import { exitCodes } from '../../shared/process/exit-codes.ts';
import { ask, maxDescribeMs, tryStatements } from './ask.ts';
import { type Finding, fault, type Place, placeOf, warning } from './report.ts';
import { type Cell, formatTable } from './table.ts';

/** The faults of the files of named statements as findings. */
export function describeNamedFaults(faults: readonly NamedFault[]): readonly Finding[] {
  return faults.map(invalid);
}

function invalid({ file, line, problem }: NamedFault): Finding {
  return fault(exitCodes.configInvalid, placeIn(file, line), problem);
}

function placeIn(file: string, line: number | null): Place {
  return { file, section: null, server: null, key: null, line };
}

/** The statements of a section and a server's answers about them; null: no server could be asked. */
export type AskedNamed = SectionStatements & {
  readonly described: readonly DescribedStatement[] | null;
  readonly enums: EnumAnswers;
  readonly findings: readonly Finding[];
};

/**
 * Asks one server of each section about its statements.
 * @param holders the server of each section that takes its writes; a section without one has none that can be reached
 */
export function askNamed(
  sections: Sections,
  named: readonly SectionStatements[],
  holders: ReadonlyMap<string, Candidate>,
): Promise<readonly AskedNamed[]> {
  return Promise.all(
    named.map(async (own): Promise<AskedNamed> => {
      const config = sections.find(({ section }) => section === own.section);
      const holder = holders.get(own.section);
      if (config === undefined || holder === undefined || own.statements.length === 0) {
        return { ...own, described: null, enums: new EnumAnswers(), findings: [] };
      }
      return askSection(config, holder, own);
    }),
  );
}

async function askSection(
  config: Config,
  holder: Candidate,
  own: SectionStatements,
): Promise<AskedNamed> {
  const { directory, statements } = own;
  const describe = async (connection: Connection) => {
    // init_sql may choose the role that has the rights. Its refusal is a finding of its own.
    await tryStatements(connection, initStatements(config));
    const enums = await fetchEnumAnswers(connection, statements);
    return { enums, described: await describeStatements(connection, statements, enums.valuesOf) };
  };
  const asked = await ask(config, holder, describe, maxDescribeMs);
  if (!asked.ok) {
    const message = `the named statements could not be tried: ${asked.failure.reason}`;
    const found = fault(exitCodes.unavailable, placeOf(config, 'named'), message);
    return { ...own, described: null, enums: new EnumAnswers(), findings: [found] };
  }
  const { enums, described } = asked.facts;
  const findings = statements.flatMap((statement, at) => {
    const file = `${directory}/${statement.file}`;
    const { faults = [], warnings = [] } = described[at] ?? {};
    return [
      ...findEnumFaults(statement, enums).map(({ line, problem }) =>
        invalid({ file, line, problem }),
      ),
      ...faults.map(({ line, problem }) => invalid({ file, line, problem })),
      ...warnings.map(({ line, problem }) => warning(placeIn(file, line), problem)),
    ];
  });
  return { ...own, described, enums, findings };
}

function findEnumFaults({ name, parameters }: NamedStatement, enums: EnumAnswers) {
  return parameters.flatMap(({ name: parameter, type, line }) =>
    listEnumColumns(type).flatMap((column) => {
      const reason = whyNoEnum(column.table, column.column, enums.find(column));
      const subject = `the parameter \`${parameter}\` of \`${name}\``;
      return reason === null ? [] : [{ line, problem: `${subject}: ${reason}` }];
    }),
  );
}

function whyNoEnum(table: string, column: string, answer: EnumAnswer | undefined): string | null {
  switch (answer?.kind) {
    case undefined:
    case 'values':
      return null;
    case 'no table':
      return `the database has no table \`${table}\` that the account may see`;
    case 'no column':
      return `the table \`${table}\` has no column \`${column}\` that the account may see`;
    case 'no enum':
      return `\`${table}.${column}\` is ${answer.type}, and no ENUM`;
    default:
      return answer satisfies never;
  }
}

/** More tools than this cost an agent room that it needs, and it chooses the wrong one more often. */
const maxTools = 40;
/** Names that a warning lists. */
const maxListed = 3;
/** `query` and `describe`, for clients with `sql`. */
const ownTools = 2;

/** Warns of agents (clients with `mcp`) that have many tools, or free SQL beside a statement that writes. */
export function findAgentWarnings(
  sections: readonly SectionStatements[],
  config: Config,
): readonly Finding[] {
  if (!config.mcp) return [];
  const agents = listClients(config).filter((client) => isAllowed(client, 'mcp'));
  return agents
    .flatMap((client) => {
      const statements = statementsFor(client, sections);
      const hasSql = isAllowed(client, 'sql');
      const tools = statements.length + (hasSql ? ownTools : 0);
      const writes = hasSql ? statements.filter(({ isRead }) => !isRead) : [];
      return [
        ...(tools > maxTools
          ? [`the agent ${client.name} has ${tools} tools: above ${maxTools}, agents choose worse`]
          : []),
        ...(writes.length > 0
          ? [
              `the agent ${client.name} has \`sql\` and may call ${listNames(writes)}: text that it reads anywhere in the database may talk it into a write`,
            ]
          : []),
      ];
    })
    .map((message) => warning(placeOf(config, 'mcp'), message));
}

function listClients({ access, tokens }: Config): readonly Client[] {
  if (access === null) return [defaultClient];
  const { clients, anonymous } = access.clients;
  return [
    ...(tokens.length === 0 ? [] : [defaultClient]),
    ...clients,
    ...(anonymous === null ? [] : [anonymous]),
  ];
}

function statementsFor(
  client: Client,
  sections: readonly SectionStatements[],
): readonly NamedStatement[] {
  if (!isAllowed(client, 'named')) return [];
  return sections
    .filter(({ section }) => client.sections?.includes(section) ?? true)
    .flatMap(({ statements }) => statements)
    .filter(({ for: clients }) => clients?.includes(client.name) ?? true);
}

function listNames(statements: readonly NamedStatement[]): string {
  const names = statements.slice(0, maxListed).map(({ name }) => `\`${name}\``);
  const more = statements.length - names.length;
  return [...names, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

const maxWidth = 100;
const indent = '  ';
const none = '–';
const headings = ['name', 'kind', 'for', 'parameters', 'columns'];

/** A table of each section's statements, in lines of at most 100 characters. Sections without statements have none. */
export function describeNamed(asked: readonly AskedNamed[]): readonly string[] {
  return asked
    .filter(({ statements }) => statements.length > 0)
    .flatMap(({ directory, statements, described }) => {
      const rows = statements.map((statement, at) =>
        describeStatement(statement, described?.[at]?.answer ?? null),
      );
      const lines = formatTable(headings, rows, maxWidth - indent.length);
      return [`statements of ${directory}`, ...lines.map((line) => `${indent}${line}`)];
    });
}

function describeStatement(
  { name, kind, for: clients, parameters }: NamedStatement,
  columns: readonly NamedColumn[] | null,
): readonly Cell[] {
  const givesRows = kind !== 'exec';
  return [
    [name],
    [kind],
    clients ?? ['*'],
    parameters.length === 0 ? [none] : parameters.map(describeParameter),
    columns?.map(describeColumn) ?? [givesRows ? 'not known' : none],
  ];
}

function describeParameter({ name, type, fallback }: Parameter): string {
  const initial = describeFallback(fallback);
  return `${name} ${type.kind === 'enum of' ? 'enum' : type.kind}${initial}`;
}

function describeFallback(fallback: Parameter['fallback']): string {
  switch (fallback.kind) {
    case 'required':
      return '';
    case 'null':
      return ' = null';
    case 'value':
      return ` = ${fallback.text}`;
    case 'claim':
      return ` = claims.${fallback.path.join('.')}`;
    default:
      return fallback satisfies never;
  }
}

function describeColumn({ name, type, precision, scale, unsigned, nullable }: NamedColumn): string {
  const digits = precision === undefined || scale === undefined ? '' : `(${precision},${scale})`;
  const word = type === null ? 'any' : `${type}${digits}`;
  return `${name} ${word}${unsigned ? ' unsigned' : ''}${nullable ? ' null' : ''}`;
}
