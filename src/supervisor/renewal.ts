// Renewal: the files of credentials are read again at SIGHUP, and the keys of JSON Web Tokens also when a worker meets an unknown one.
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
import type { FileFault } from '../shared/observe/stats.ts';
import type { Log } from '../shared/process/log.ts';

/** Anyone can send a token with an unknown `kid`, so the file is not read more often for one. */
const keysIntervalMs = 10_000;

/** The settings in force, and the faults of files that could not replace them. */
export class Renewal {
  readonly #log: Log;
  readonly #hand: (credentials: SectionCredentials) => void;
  #sections: Sections;
  #faults: readonly SectionFault[] = [];
  #keyFaults: readonly SectionFault[] = [];
  #keysReadAt = Number.NEGATIVE_INFINITY;

  /** @param hand gives new credentials to all workers */
  constructor(sections: Sections, log: Log, hand: (credentials: SectionCredentials) => void) {
    this.#sections = sections;
    this.#log = log;
    this.#hand = hand;
  }

  get sections(): Sections {
    return this.#sections;
  }

  /** The faults that the files had when they were last read. */
  faults(): readonly FileFault[] {
    const texts = new Set(this.#faults.map((fault) => JSON.stringify(fault)));
    const further = this.#keyFaults.filter((fault) => !texts.has(JSON.stringify(fault)));
    return [...this.#faults, ...further].map((fault) => this.#describe(fault));
  }

  /** Reads all files again. A faulty file changes nothing. */
  all(): void {
    const sections = this.#sections;
    const { credentials, faults } = renewCredentials(sections);
    this.#faults = faults;
    this.#keyFaults = [];
    for (const fault of faults) this.#report(fault);
    this.#apply(credentials);
    const files = sections
      .flatMap(({ credentialFiles }) => Object.values(credentialFiles))
      .filter((file) => file !== null).length;
    this.#log.info('log files reopened, credentials read again', { files, faults: faults.length });
  }

  /** Reads `jwt_keys` again, unless that was less than ten seconds ago. Returns whether it did. */
  keys(): boolean {
    const now = performance.now();
    const [config] = this.#sections;
    if (config.jwtKeys === null || now - this.#keysReadAt < keysIntervalMs) return false;
    this.#keysReadAt = now;
    const { access, faults } = renewJwtKeys(config);
    // Once for each fault: tokens with an unknown `kid` may come at any rate, and for ever.
    if (JSON.stringify(faults) !== JSON.stringify(this.#keyFaults)) {
      for (const fault of faults) this.#report(fault);
    }
    this.#keyFaults = faults;
    if (access === null) return true;
    const [first, ...others] = this.#sections.map((section) => ({
      ...credentialsOf(section),
      access,
    }));
    if (first !== undefined) this.#apply([first, ...others]);
    this.#log.info('jwt_keys read again for an unknown kid', { keys: access.jwtKeys.length });
    return true;
  }

  #apply(credentials: SectionCredentials): void {
    this.#hand(credentials);
    this.#sections = withCredentials(this.#sections, credentials);
  }

  #report(fault: SectionFault): void {
    const { section, key, at, problem } = this.#describe(fault);
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

function credentialsOf({
  password,
  tokens,
  access,
  tlsTexts,
  httpsTexts,
}: Credentials): Credentials {
  return { password, tokens, access, tlsTexts, httpsTexts };
}
