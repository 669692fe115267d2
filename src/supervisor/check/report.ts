// The report of --check: settings, servers and findings as data, and the text that is printed from them.
import type { Config, Sections } from '../../shared/config/config.ts';
import { describeConfig, listSettings } from '../../shared/config/describe.ts';
import { formatFaultPlace } from '../../shared/config/load-config.ts';
import { type ExitCode, exitCodes } from '../../shared/process/exit-codes.ts';

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

/** One server of one section. Without facts and lines: it could not be reached. */
export type ServerReport = {
  readonly section: string;
  readonly server: string;
  readonly facts: {
    readonly flavour: string;
    readonly version: string;
    /** Null: its section has no other server. */
    readonly role: string | null;
    /** Connections of all gateways, and those while one of them is restarted. */
    readonly needed: number;
    readonly restart: number;
    readonly maxConnections: number;
    /** Null: the account has no limit. */
    readonly maxUserConnections: number | null;
  } | null;
  readonly lines: readonly string[];
};

/** Everything that --check found out. */
export type Report = {
  /** The sections whose settings are valid. */
  readonly sections: Sections | readonly [];
  /** A table of who may do what. Empty: no clients are configured. */
  readonly clients: readonly string[];
  /** Tables of the named statements. Empty: there are none. */
  readonly statements: readonly string[];
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

/** The lines for stdout: settings, clients, named statements, instance, servers with their warnings, statements. */
export function formatReport(report: Report): readonly string[] {
  const { sections, clients, statements, instance, servers, creations, findings } = report;
  const warningsOf = (section: string | null, server: string | null) =>
    findings
      .filter((one) => one.severity === 'warning' && one.server === server)
      .filter((one) => section === null || one.section === section)
      .map(({ message }) => `warning: ${message}`);
  const isAlone = hasOneServer(report);
  const hasTables = clients.length + statements.length > 0;
  return [
    ...sections.flatMap((section) => [
      `[${section.section}] of ${section.configPath}`,
      ...describeConfig(section).map((line) => `  ${line}`),
    ]),
    ...(clients.length === 0 ? [] : ['', ...clients]),
    ...(statements.length === 0 ? [] : ['', ...statements]),
    ...(instance === null ? [] : [...(hasTables ? [''] : []), `instance: ${instance}`]),
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
export function formatFaults(report: Pick<Report, 'sections' | 'findings'>): readonly string[] {
  const isAlone = hasOneServer(report);
  return report.findings
    .filter(({ severity }) => severity === 'fault')
    .map((finding) => `dbhttpd: ${formatPlace(finding, isAlone)}${finding.message}`);
}

/** The exit status of --check: that of the first fault, or 0. */
export function exitCodeOf({ findings }: Pick<Report, 'findings'>): ExitCode {
  const [first] = findings.filter((finding) => finding.severity === 'fault');
  return first?.exitCode ?? exitCodes.ok;
}

/** The last line for stdout. */
export function formatVerdict(report: Report): string {
  const count = (severity: Finding['severity']) => {
    const { length } = report.findings.filter((one) => one.severity === severity);
    return `${length === 0 ? 'no' : length} ${severity}${length === 1 ? '' : 's'}`;
  };
  const exitCode = exitCodeOf(report);
  const whole = `${count('fault')}, ${count('warning')}`;
  return exitCode === exitCodes.ok
    ? `verdict: ok (${whole})`
    : `verdict: not ok (${whole}), exit ${exitCode}`;
}

/** The one object of --check --json. Every list has its entries in the order of the sections and of their servers. */
export function formatJson(report: Report): string {
  const { sections, servers, findings } = report;
  const isAlone = hasOneServer(report);
  const list = (severity: Finding['severity']) =>
    findings
      .filter((one) => one.severity === severity)
      .map(({ file, section, server, key, line, message }) => {
        const isNamed = server === null || isAlone || message.includes(server);
        return { file, section, key, line, message: isNamed ? message : `${server}: ${message}` };
      });
  const reached = servers.flatMap(({ section, server: address, facts }) =>
    facts === null ? [] : [{ section, address, facts }],
  );
  return JSON.stringify({
    ok: exitCodeOf(report) === exitCodes.ok,
    faults: list('fault'),
    warnings: list('warning'),
    settings: Object.fromEntries(
      sections.map((config) => [config.section, Object.fromEntries(listSettings(config))]),
    ),
    server: reached.map(({ section, address, facts: { flavour, version, role } }) => {
      return { section, address, flavour, version, role };
    }),
    connections: reached.map(({ section, address, facts }) => ({
      section,
      address,
      needed: facts.needed,
      restart: facts.restart,
      max_connections: facts.maxConnections,
      max_user_connections: facts.maxUserConnections,
    })),
  });
}

function hasOneServer({ sections }: Pick<Report, 'sections'>): boolean {
  return sections.flatMap(({ candidates }) => candidates).length === 1;
}

function formatPlace({ file, section, server, key, line, message }: Finding, isAlone: boolean) {
  if (section === null && key === null && line === null && message.includes(file)) return '';
  if (server === null) return `${formatFaultPlace({ file, section, key, line })}: `;
  if (isAlone) return '';
  return message.includes(server) ? `[${section}] ` : `[${section}] ${server}: `;
}
