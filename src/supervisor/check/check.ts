// --check: examines everything that a start needs, and starts nothing.
import { formatListenAddress } from '../../shared/config/addresses.ts';
import { listCertificates } from '../../shared/config/certificates.ts';
import type { Config, Sections } from '../../shared/config/config.ts';
import {
  type Environment,
  type Fault,
  loadConfig,
  type Target,
} from '../../shared/config/load-config.ts';
import { currentPlace } from '../../shared/config/machine-defaults.ts';
import { describeCreation } from '../../shared/database/idempotency-table.ts';
import { findNamedFaults, parseDirectories } from '../../shared/named/load-sections.ts';
import { type ExitCode, exitCodes } from '../../shared/process/exit-codes.ts';
import { escapeControl } from '../../shared/process/log.ts';
import { holderOf } from '../claim/claim.ts';
import { bindListener, isTaken } from '../listener/listener.ts';
import { findNearExpiry } from '../observe/expiry-watch.ts';
import { describeClients, findClientWarnings } from './clients.ts';
import { examineDatabases, tableOf } from './databases.ts';
import { findFileWarnings, findUncreatable, whyNotCreatable } from './files.ts';
import { askNamed, describeNamed, describeNamedFaults, findAgentWarnings } from './named.ts';
import {
  exitCodeOf,
  type Finding,
  fault,
  formatFaults,
  formatJson,
  formatReport,
  formatVerdict,
  placeOf,
  type Report,
  warning,
} from './report.ts';
import { isSocketUnitActive, socketUnitOf } from './socket-unit.ts';

/**
 * Prints the effective settings and a verdict on stdout, and every fault on stderr; or all of it as one JSON object on stdout.
 * Returns the first fault's exit status, or 0.
 */
export async function check(target: Target, isJson: boolean, env: Environment): Promise<ExitCode> {
  // A reader that closes its end early (`| head`) is no fault of the configuration.
  process.stdout.on('error', () => {});
  const report = await examine(target, env);
  const print = (stream: NodeJS.WriteStream, lines: readonly string[]) => {
    for (const line of lines) stream.write(`${escapeControl(line)}\n`);
  };
  if (isJson) print(process.stdout, [formatJson(report)]);
  else {
    const lines = formatReport(report);
    print(process.stdout, lines);
    print(process.stderr, formatFaults(report));
    print(process.stdout, [...(lines.length === 0 ? [] : ['']), formatVerdict(report)]);
  }
  return exitCodeOf(report);
}

async function examine(target: Target, env: Environment): Promise<Report> {
  const loaded = loadConfig(target, env, currentPlace());
  const nothing = {
    sections: [],
    clients: [],
    statements: [],
    instance: null,
    servers: [],
    creations: [],
  } as const;
  switch (loaded.kind) {
    case 'unreadable': {
      const place = { file: target.configPath, section: null, server: null, key: null, line: null };
      return {
        ...nothing,
        findings: [fault(exitCodes.configUnreadable, place, loaded.reason)],
      };
    }
    case 'invalid': {
      const named = describeNamedFaults(parseDirectories(loaded.named).faults);
      return { ...nothing, findings: [...loaded.faults.map(invalid), ...named] };
    }
    case 'ok': {
      const { sections, warnings } = loaded;
      const [config] = sections;
      const instance = await findInstance(config);
      const unbindable = instance === null ? await findUnbindable(config, target) : [];
      const databases = await examineDatabases(sections);
      const directories = parseDirectories(sections);
      const named = await askNamed(sections, directories.sections, databases.holders);
      const tables = sections.map(tableOf).filter((table) => table !== null);
      return {
        sections,
        clients: describeClients(config),
        statements: describeNamed(named),
        instance,
        servers: databases.servers,
        creations: [...new Set(tables.map(describeCreation))],
        findings: [
          ...warnings.map(invalid),
          ...findNearExpiries(sections),
          ...findClientWarnings(config, Date.now()),
          ...describeNamedFaults(findNamedFaults(directories, config.access?.clients ?? null)),
          ...findAgentWarnings(directories.sections, config),
          ...findUncreatable(config),
          ...unbindable,
          ...databases.findings,
          ...named.flatMap(({ findings }) => findings),
          ...findFileWarnings(sections),
        ],
      };
    }
    default:
      return loaded satisfies never;
  }
}

function invalid({ problem, ...place }: Fault): Finding {
  return fault(exitCodes.configInvalid, { ...place, server: null }, problem);
}

function findNearExpiries(sections: Sections): readonly Finding[] {
  const now = Date.now();
  return listCertificates(sections, now).flatMap((certificate) => {
    const { section, key } = certificate;
    const config = sections.find((one) => one.section === section) ?? sections[0];
    const problem = findNearExpiry(certificate, now);
    return problem === null ? [] : [warning(placeOf(config, key), `${key} ${problem}`)];
  });
}

async function findUnbindable(config: Config, { sections }: Target): Promise<readonly Finding[]> {
  const { listen } = config;
  const place = placeOf(config, 'listen');
  const unit = socketUnitOf(sections);
  const held = `${unit} holds the socket: only its service can start`;
  // Asked first: a connection to a unix socket would start the service.
  if (listen.kind === 'unix' && (await isSocketUnitActive(unit))) return [warning(place, held)];
  const reason = await whyNotBindable(config);
  if (reason === null) return [];
  if (reason === 'EADDRINUSE' && (await isSocketUnitActive(unit))) return [warning(place, held)];
  const message = `cannot listen on ${formatListenAddress(listen)}: ${reason}`;
  return [fault(exitCodes.unavailable, place, message)];
}

async function whyNotBindable({ listen, listenMode }: Config): Promise<string | null> {
  // Binding would replace the socket's name, so its path is only examined.
  if (listen.kind === 'unix') {
    const reason = whyNotCreatable(listen.path, false);
    return reason ?? ((await isTaken(listen.path)) ? 'EADDRINUSE' : null);
  }
  const bound = await bindListener(listen, listenMode);
  if (!bound.ok) return bound.reason;
  bound.listener.close();
  return null;
}

async function findInstance(config: Config): Promise<string | null> {
  try {
    return await holderOf(config.pidfile);
  } catch {
    // The pidfile's directory is missing, which is reported as such. No process can hold the claim.
    return null;
  }
}
