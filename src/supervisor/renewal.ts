// Renewal: the files of credentials and the named statements are read again at SIGHUP, the keys of JSON Web Tokens also when a worker meets
// an unknown one, and the named statements also when they have changed and `named_watch` is on.
import type { Sections } from '../shared/config/config.ts';
import {
  type Credentials,
  renewCredentials,
  renewJwtKeys,
  type SectionCredentials,
  type SectionFault,
  withCredentials,
} from '../shared/config/credentials.ts';
import { formatFaultPlace } from '../shared/config/load-config.ts';
import {
  findNamedFaults,
  type NamedBySection,
  type ParsedDirectories,
  parseDirectories,
  type SectionNamedFault,
  statementsOf,
} from '../shared/named/load-sections.ts';
import type { FileFault } from '../shared/observe/stats.ts';
import type { Log } from '../shared/process/log.ts';
import type { Renewed } from '../shared/process/messages.ts';

/** Anyone can send a token with an unknown `kid`, so the file is not read more often for one. */
const keysIntervalMs = 10_000;

const unreadClients =
  'was not used at the last SIGHUP, and neither were the named statements, because jwt_keys was faulty: send SIGHUP again';

/** The settings in force, and the faults of files that could not replace them. */
export class Renewal {
  readonly #log: Log;
  readonly #hand: (renewed: Renewed) => void;
  #sections: Sections;
  #faults: readonly SectionFault[] = [];
  /** Whether the last SIGHUP did not replace the clients because of a fault in `jwt_keys` alone. */
  #awaitsKeys = false;
  #namedFaults: readonly SectionNamedFault[] = [];
  #keysReadAt = Number.NEGATIVE_INFINITY;

  /** @param hand gives what was read to all workers */
  constructor(sections: Sections, log: Log, hand: (renewed: Renewed) => void) {
    this.#sections = sections;
    this.#log = log;
    this.#hand = hand;
  }

  get sections(): Sections {
    return this.#sections;
  }

  /** The faults that the files had when they were last read. */
  faults(): readonly FileFault[] {
    const files = this.#faults.map((fault) => this.#describe(fault));
    return [...files, ...this.#namedFaults.map(describeNamed)];
  }

  /** Reads all files again. A faulty file changes nothing. Clients and named statements are replaced together, or not at all. */
  all(): void {
    const sections = this.#sections;
    const directories = parseDirectories(sections);
    const compared: SectionNamedFault[][] = [];
    const { credentials, faults } = renewCredentials(sections, (clients) => {
      const found = findNamedFaults(directories, clients);
      compared.push([...found]);
      return found.length === 0;
    });
    const [namedFaults] = compared;
    this.#faults = faults;
    this.#awaitsKeys = faults.some(isOfKeys) && !faults.some(({ key }) => key === 'clients');
    for (const fault of faults) this.#report(this.#describe(fault));
    // Clients that cannot be used have been compared with nothing.
    const areClientsFaulty = namedFaults === undefined && sections[0].access !== null;
    this.#namedFaults = namedFaults ?? this.#findNamedFaults(directories);
    for (const fault of this.#namedFaults) this.#report(describeNamed(fault));
    const isNew = this.#namedFaults.length === 0 && !areClientsFaulty;
    this.#apply(credentials, isNew ? statementsOf(directories) : null);
    const files = sections
      .flatMap(({ credentialFiles, named }) => [...Object.values(credentialFiles), named])
      .filter((file) => file !== null).length;
    this.#log.info('log files reopened, credentials read again', {
      files,
      faults: faults.length + this.#namedFaults.length,
    });
  }

  /** Reads the named statements again. A faulty file changes nothing. */
  named(): void {
    const directories = parseDirectories(this.#sections);
    const faults = this.#findNamedFaults(directories);
    this.#namedFaults = faults;
    for (const fault of faults) this.#report(describeNamed(fault));
    if (faults.length > 0) return;
    const named = statementsOf(directories);
    this.#hand({ credentials: null, named });
    this.#log.info('named statements read again', { statements: countStatements(named) });
  }

  #findNamedFaults(directories: ParsedDirectories): readonly SectionNamedFault[] {
    return findNamedFaults(directories, this.#sections[0].access?.clients ?? null);
  }

  /** Reads `jwt_keys` again, unless that was less than ten seconds ago. Returns whether it did. */
  keys(): boolean {
    const now = performance.now();
    const [config] = this.#sections;
    if (config.jwtKeys === null || now - this.#keysReadAt < keysIntervalMs) return false;
    this.#keysReadAt = now;
    const { access, faults } = renewJwtKeys(config);
    this.#replaceKeyFaults(config.section, faults);
    if (access === null) return true;
    const [first, ...others] = this.#sections.map((section) => ({
      ...credentialsOf(section),
      access,
    }));
    if (first !== undefined) this.#apply([first, ...others], null);
    this.#log.info('jwt_keys read again for an unknown kid', { keys: access.jwtKeys.length });
    return true;
  }

  #replaceKeyFaults(section: string, faults: readonly SectionFault[]): void {
    // Once for each fault: tokens with an unknown `kid` may come at any rate, and for ever.
    if (JSON.stringify(faults) !== JSON.stringify(this.#faults.filter(isOfKeys))) {
      for (const fault of faults) this.#report(this.#describe(fault));
    }
    this.#faults = [...this.#faults.filter((fault) => !isOfKeys(fault)), ...faults];
    if (faults.length > 0 || !this.#awaitsKeys) return;
    this.#awaitsKeys = false;
    const unread = { section, key: 'clients', problem: unreadClients, inside: null } as const;
    this.#faults = [...this.#faults, unread];
    this.#report(this.#describe(unread));
  }

  #apply(credentials: SectionCredentials, named: NamedBySection | null): void {
    this.#hand({ credentials, named });
    this.#sections = withCredentials(this.#sections, credentials);
  }

  #report({ section, key, at, problem }: FileFault): void {
    // A single section needs no name.
    const place = this.#sections.length > 1 ? { section } : {};
    const fields = { ...place, key, ...(at === null ? {} : { at }), problem };
    this.#log.error('a file cannot be used: what it held before stays in use', fields);
  }

  #describe({ section, key, problem, inside }: SectionFault): FileFault {
    const config = this.#sections.find((one) => one.section === section);
    const file = config?.credentialFiles[key] ?? '';
    const at = inside === null ? null : formatFaultPlace({ file, ...inside });
    return { section, key, at, problem };
  }
}

function isOfKeys({ key }: SectionFault): boolean {
  return key === 'jwt_keys';
}

function describeNamed({ section, file, line, problem }: SectionNamedFault): FileFault {
  return {
    section,
    key: 'named',
    at: formatFaultPlace({ file, section: null, key: null, line }),
    problem,
  };
}

function countStatements(named: NamedBySection): number {
  return Object.values(named).reduce((sum, { length }) => sum + length, 0);
}

function credentialsOf({
  password,
  tokens,
  access,
  tlsTexts,
  httpsTexts,
}: Credentials): Credentials {
  return { password, tokens, access, tlsTexts, httpsTexts };
}
