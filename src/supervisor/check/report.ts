// The report of --check: settings, servers and findings as data, and the text that is printed from them.
import type { Config, Sections } from '../../shared/config/config.ts';
import { describeConfig } from '../../shared/config/describe.ts';
import { formatFaultPlace } from '../../shared/config/load-config.ts';
import type { ExitCode } from '../../shared/process/exit-codes.ts';

/** The place of a finding. Null: it has none in particular. */
export type Place = {
  readonly file: string;
  readonly section: string | null;
  /** The address of the server of the section. */
  readonly server: string | null;
  readonly key: string | null;
  readonly line: number | null;
};

/** One result. `exitCode`: the exit status that the fault stands for. */
export type Finding = Place & { readonly message: string } & (
    | { readonly severity: 'fault'; readonly exitCode: ExitCode }
    | { readonly severity: 'warning' }
  );

/** One server of one section, in lines. None: it could not be reached. */
export type ServerReport = {
  readonly section: string;
  readonly server: string;
  readonly lines: readonly string[];
};

/** Everything that --check found out. */
export type Report = {
  /** The sections whose settings are valid. */
  readonly sections: Sections | readonly [];
  /** A table of who may do what. Empty: no clients are configured. */
  readonly clients: readonly string[];
  /** The running instance's report about itself; null: none runs. */
  readonly instance: string | null;
  /** The servers of the sections of which at least one server can be reached. */
  readonly servers: readonly ServerReport[];
  /** The statements that create the tables of idempotency keys. */
  readonly creations: readonly string[];
  readonly findings: readonly Finding[];
};

/** The place of a key of a section, and of one of its servers. */
export function placeOf(config: Config, key: string | null, server: string | null = null): Place {
  return { file: config.configPath, section: config.section, server, key, line: null };
}

export function fault(exitCode: ExitCode, place: Place, message: string): Finding {
  return { ...place, severity: 'fault', exitCode, message };
}

export function warning(place: Place, message: string): Finding {
  return { ...place, severity: 'warning', message };
}

/** The lines for stdout: settings, clients, instance, servers with their warnings, statements. */
export function formatReport(report: Report): readonly string[] {
  const { sections, clients, instance, servers, creations, findings } = report;
  const warningsOf = (section: string | null, server: string | null) =>
    findings
      .filter((one) => one.severity === 'warning' && one.server === server)
      .filter((one) => section === null || one.section === section)
      .map(({ message }) => `warning: ${message}`);
  const isAlone = hasOneServer(report);
  return [
    ...sections.flatMap((section) => [
      `[${section.section}] of ${section.configPath}`,
      ...describeConfig(section).map((line) => `  ${line}`),
    ]),
    ...(clients.length === 0 ? [] : ['', ...clients]),
    ...(instance === null ? [] : [...(clients.length === 0 ? [] : ['']), `instance: ${instance}`]),
    ...servers.flatMap(({ section, server, lines }) => [
      '',
      ...(isAlone ? [] : [`[${section}] ${server}`]),
      ...lines,
      ...warningsOf(section, server),
    ]),
    ...warningsOf(null, null),
    // Between empty lines and from the first column on, so that it can be cut out: docs/guides/retries.md says how.
    ...creations.flatMap((statement) => ['', ...statement.split('\n')]),
  ];
}

/** The lines for stderr: the faults. */
export function formatFaults(report: Report): readonly string[] {
  const isAlone = hasOneServer(report);
  return report.findings
    .filter(({ severity }) => severity === 'fault')
    .map((finding) => `dbhttpd: ${formatPlace(finding, isAlone)}${finding.message}`);
}

function hasOneServer({ sections }: Report): boolean {
  return sections.flatMap(({ candidates }) => candidates).length === 1;
}

function formatPlace({ file, section, server, key, line, message }: Finding, isAlone: boolean) {
  if (section === null && key === null && line === null && message.includes(file)) return '';
  if (server === null) return `${formatFaultPlace({ file, section, key, line })}: `;
  if (isAlone) return '';
  return message.includes(server) ? `[${section}] ` : `[${section}] ${server}: `;
}
