// Loading of the configuration: one file is read once, and all requested sections become settings, or every fault is reported.
import { lstatSync, readFileSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseServerKeys } from '../server-keys.ts';
import { describeExposure, readAccess } from './access.ts';
import { type Candidates, candidateKey, formatCandidate } from './addresses.ts';
import { listCertificates } from './certificates.ts';
import {
  acceptedHosts,
  type Config,
  composeConfig,
  parseEntries,
  type Sections,
  type Surroundings,
  type Values,
  withInstance,
  writtenKeys,
} from './config.ts';
import { findConflicts } from './conflicts.ts';
import {
  type CredentialFault,
  type CredentialFiles,
  credentialKeys,
  parseTokens,
  readCredentials,
  readSessionKey,
} from './credentials.ts';
import { findStrayLines, type KeyForm, readSection, type TextFault } from './ini-section.ts';
import {
  logDirectory,
  type Place,
  processorCount,
  runDirectory,
  stateDirectory,
} from './machine-defaults.ts';
import { isOfInstance, type OptionKey } from './options.ts';
import { decodeText, isOpenToOthers, readRegularFile } from './regular-file.ts';

/** Which sections of which file. */
export type Target = {
  readonly configPath: string;
  /** From `-s`: the first is the instance's; the others list more servers of the same database. */
  readonly sections: readonly [string, ...string[]];
  /** From `-m`: sections served beside the first. */
  readonly beside: readonly string[];
};

/** One fault with its file, section and key. It never holds a value. `section` is null if the line belongs to none. */
export type Fault = TextFault & { readonly file: string; readonly section: string | null };

/**
 * The result of reading the sections. `warnings`: an instance can start with them, and logs them when it runs, but an operator has to act. `log`: where an
 * invalid first section wants the faults written, if it says so.
 */
export type Loaded =
  | { readonly kind: 'ok'; readonly sections: Sections; readonly warnings: readonly Fault[] }
  | { readonly kind: 'unreadable'; readonly reason: string }
  | {
      readonly kind: 'invalid';
      readonly faults: readonly Fault[];
      readonly log: string | null;
      /** The sections whose directories of named statements can be read all the same. */
      readonly named: readonly NamedSource[];
    };

/** The settings of a section that decide on its named statements. */
export type NamedSource = Pick<Config, 'section' | 'named' | 'idempotencyTable'>;

/** A process's environment: the main files hand it down. */
export type Environment = Readonly<Record<string, string | undefined>>;

type ConfigFile = { readonly path: string; readonly text: string; readonly stats: Stats };

/** A section as it is written, and what is wrong with that. */
type Written = {
  readonly name: string;
  readonly values: Values;
  readonly keys: ReadonlySet<string>;
  readonly faults: readonly TextFault[];
};

/** A section's settings. If there are faults, only `log` may be used. */
type LoadedSection = {
  readonly values: Values;
  readonly config: Config;
  readonly faults: readonly TextFault[];
  /** The faults of other files that the section names. */
  readonly faultsElsewhere: readonly Fault[];
};

type Addition = { readonly key: OptionKey; readonly problem: string };

const maxDefaultWorkers = 8;

/**
 * Reads the sections of a file and finds every fault of all of them. Secrets in the environment override those of the first
 * section only.
 */
export function loadConfig(target: Target, env: Environment, place: Place): Loaded {
  const { configPath, sections: names, beside } = target;
  const [name, ...listedNames] = names;
  const faults: Fault[] = [];
  const blame = (section: string | null, found: readonly TextFault[]) => {
    for (const fault of found) faults.push({ ...fault, file: configPath, section });
  };
  const whole = (problem: string): readonly TextFault[] => [{ key: null, line: null, problem }];
  let file: ConfigFile;
  try {
    const stats = statSync(configPath);
    const text = decodeText(readFileSync(configPath));
    if (text === null) {
      blame(name, whole('the file is not valid UTF-8'));
      return { kind: 'invalid', faults, log: null, named: [] };
    }
    file = { path: configPath, text, stats };
    blame(null, findStrayLines(text));
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    return { kind: 'unreadable', reason: `cannot read ${configPath}: ${reason}` };
  }
  const open = <T extends Pick<LoadedSection, 'faults'> & Partial<LoadedSection>>(
    section: string,
    load: (written: Written) => T,
  ): T | null => {
    const written = readWritten(file, section);
    const loaded = typeof written === 'string' ? null : load(written);
    blame(section, typeof written === 'string' ? whole(written) : (loaded?.faults ?? []));
    faults.push(...(loaded?.faultsElsewhere ?? []));
    return loaded;
  };

  const first = open(name, (written) => loadInstance(written, file, env, place, [name, ...beside]));
  if (first === null) {
    // The settings of the other sections depend on the first. Only their syntax can be checked.
    for (const section of [...listedNames, ...beside]) open(section, (written) => written);
    return { kind: 'invalid', faults, log: null, named: [] };
  }
  let { candidates } = first.config;
  for (const section of listedNames) {
    const listed = open(section, (written) => loadListed(written, file, first, candidates, env));
    if (listed !== null) candidates = [...candidates, ...listed.config.candidates];
  }
  const others = beside.flatMap((section): readonly Config[] => {
    const loaded = open(section, (written) => loadBeside(written, file, first));
    return loaded === null ? [] : [loaded.config];
  });
  if (faults.length > 0) {
    // A faulty `log` may name a file that must not be written to.
    const isNoLog = first.values.log !== null && first.faults.some(({ key }) => key === 'log');
    const log = isNoLog ? null : first.config.log;
    return { kind: 'invalid', faults, log, named: [first.config, ...others] };
  }
  const config = Object.freeze({ ...first.config, candidates: Object.freeze(candidates) });
  const sections: Sections = [config, ...others];
  return { kind: 'ok', sections, warnings: findWarnings(sections) };
}

/** Certificates that are not valid now. */
function findWarnings(sections: Sections): readonly Fault[] {
  const [{ configPath: file }] = sections;
  return listCertificates(sections, Date.now()).flatMap(({ section, key, lapse: problem }) =>
    problem === null ? [] : [{ file, section, key, line: null, problem }],
  );
}

/** A fault in one line: file, section, key, line, problem. */
export function formatFault(fault: Fault): string {
  return `${formatFaultPlace(fault)}: ${fault.problem}`;
}

/** The place of a fault: file, section, key, line. */
export function formatFaultPlace({ file, section, key, line }: Omit<Fault, 'problem'>): string {
  const parts = [
    ...(section === null ? [] : [`[${section}]`]),
    ...(key === null ? [] : [key.slice(0, 64)]),
    ...(line === null ? [] : [`(line ${line})`]),
  ];
  return parts.length === 0 ? file : `${file}: ${parts.join(' ')}`;
}

/** The keys of a section, or why there is no section of that name. */
function readWritten({ text }: ConfigFile, name: string): Written | string {
  if (!/^[\p{L}\p{N}_-][\p{L}\p{N}._-]{0,63}$/u.test(name)) {
    return 'a section is named with letters, digits, dots, - and _, at most 64';
  }
  const section = readSection(text, name, formOf);
  if (section === null) return 'the file has no such section';
  return { name, keys: writtenKeys(section), ...parseEntries(section) };
}

function formOf(key: string): KeyForm {
  return key === 'password' || key === 'token' || key === 'init_sql' ? 'free' : 'plain';
}

/** The settings of the first section, which are also the instance's. */
function loadInstance(
  written: Written,
  file: ConfigFile,
  env: Environment,
  place: Place,
  served: readonly string[],
): LoadedSection {
  const { name, values } = written;
  const files = credentialFiles(values, env);
  const { found, faults } = readCredentials(files);
  const tokens = env.DBHTTPD_TOKEN === undefined ? null : parseTokens(env.DBHTTPD_TOKEN);
  const { listen, insecure, https_cert: httpsCert } = values;
  const access = readAccess(files, {
    served,
    tokens: tokens ?? found.tokens ?? values.token ?? [],
    exposure: describeExposure({ listen, allowHosts: acceptedHosts(values), httpsCert, insecure }),
  });
  const { session_key_file: keyFile } = values;
  const key = keyFile === null ? null : readSessionKey(keyFile);
  const serverKeys = readServerKeys(values.server_public_key);
  const around: Surroundings = {
    section: name,
    configPath: file.path,
    credentialFiles: files,
    password: env.DBHTTPD_PASSWORD ?? found.password,
    tokens: tokens ?? found.tokens,
    access: access.access,
    sessionKey: key?.ok === true ? key.key : null,
    tlsTexts: found.tlsTexts,
    serverKeys: serverKeys.keys,
    httpsTexts: found.httpsTexts,
    workers: Math.min(processorCount(), maxDefaultWorkers),
    log: join(logDirectory(place), `dbhttpd-${name}.log`),
    pidfile: join(runDirectory(place), `dbhttpd-${name}.pid`),
    stateDir: stateDirectory(place),
  };
  const additions = [
    ...faults,
    ...access.faults.filter(({ inside }) => inside === null),
    ...(key?.ok === false ? [{ key: 'session_key_file', problem: key.problem } as const] : []),
    ...serverKeys.faults,
    ...findNoTokens(tokens),
    ...findOpenSecrets(file.stats, values),
    ...findBadPlaces(values),
  ];
  const loaded = compose(written, values, around, () => true, additions);
  return { ...loaded, faultsElsewhere: faultsOfFiles(access.faults, files) };
}

/** The faults that have a place in the file that their key names. */
function faultsOfFiles(
  faults: readonly CredentialFault[],
  files: CredentialFiles,
): readonly Fault[] {
  return faults.flatMap(({ key, problem, inside }) =>
    inside === null ? [] : [{ file: files[key] ?? '', problem, ...inside }],
  );
}

/** The settings of a section that is served beside the first. Settings of the whole daemon come from the first section. */
function loadBeside(written: Written, file: ConfigFile, first: LoadedSection): LoadedSection {
  const own = credentialFiles(written.values, {});
  const files = { ...own, ...noFilesOfInstance };
  const { found, faults } = readCredentials(files);
  const serverKeys = readServerKeys(written.values.server_public_key);
  const around: Surroundings = {
    ...first.config,
    section: written.name,
    credentialFiles: Object.freeze(files),
    password: found.password,
    tlsTexts: found.tlsTexts,
    serverKeys: serverKeys.keys,
  };
  // Drivers name no section. They always get the first.
  const values: Values = { ...withInstance(written.values, first.values), drivers: 'off' };
  const additions = [
    ...faults,
    ...serverKeys.faults,
    ...findOpenSecrets(file.stats, written.values),
  ];
  return compose(written, values, around, (key) => !isOfInstance(key), additions);
}

/** The keys that count in a section which only lists more servers of the first one. */
const listedKeys: ReadonlySet<OptionKey> = new Set(['host', 'socket', 'password_file']);

/**
 * The settings of a section that lists more servers of the first one. A different database, account or password is a fault,
 * because the first section's are used.
 * @param known the servers that are already listed
 */
function loadListed(
  written: Written,
  file: ConfigFile,
  first: LoadedSection,
  known: Candidates,
  env: Environment,
): LoadedSection {
  const { name, values } = written;
  const { found, faults } = readCredentials({ ...noFiles, ...passwordFile(values, env) });
  const around = { ...first.config, section: name };
  const loaded = compose(written, values, around, (key) => listedKeys.has(key), [
    ...faults,
    ...findOpenSecrets(file.stats, values),
    ...findDifferences(values, first, env.DBHTTPD_PASSWORD === undefined, found.password),
  ]);
  if (values.host === null && values.socket === null) return loaded;
  const taken = new Set(known.map(candidateKey));
  const repeated = loaded.config.candidates.filter((one) => taken.has(candidateKey(one)));
  const further = repeated.map((one) => ({
    key: one.socket === null ? 'host' : 'socket',
    line: null,
    problem: `${formatCandidate(one)} is a server of a section before it`,
  }));
  return { ...loaded, faults: [...loaded.faults, ...further] };
}

function findDifferences(
  values: Values,
  first: LoadedSection,
  isPasswordOfFile: boolean,
  passwordOfFile: string | null,
): readonly Addition[] {
  const { section } = first.config;
  const problem = `differs from that of [${section}], whose servers are listed here`;
  const accounts = (['database', 'user'] as const).filter((key) => {
    return values[key] !== null && first.values[key] !== null && values[key] !== first.values[key];
  });
  const password = values.password ?? passwordOfFile;
  const differs = isPasswordOfFile && password !== null && password !== first.config.password;
  const secret = values.password === null ? 'password_file' : 'password';
  const keys: readonly OptionKey[] = differs ? [...accounts, secret] : accounts;
  return keys.map((key) => ({ key, problem }));
}

/** @param isJudged whether the combinations of a key count in this section */
function compose(
  written: Written,
  values: Values,
  around: Surroundings,
  isJudged: (key: OptionKey) => boolean,
  additions: readonly Addition[],
): LoadedSection {
  const config = composeConfig(values, around);
  const conflicts = findConflicts(config, values, written.keys).filter(({ key }) => isJudged(key));
  const further = [...conflicts, ...additions].map(({ key, problem }) => ({
    key,
    line: null,
    problem,
  }));
  // A key that cannot be read conflicts with nothing yet: one fault at a time for each key.
  const faulty = new Set(written.faults.map((one) => one.key));
  const faults = [...written.faults, ...further.filter((one) => !faulty.has(one.key))];
  return { values, config, faults, faultsElsewhere: [] };
}

/** The keys are no secret: others may read the file. @param path null: not set */
function readServerKeys(path: string | null): {
  readonly keys: readonly string[];
  readonly faults: readonly Addition[];
} {
  if (path === null) return { keys: [], faults: [] };
  const fault = (problem: string) => ({
    keys: [],
    faults: [{ key: 'server_public_key', problem }] as const,
  });
  try {
    const keys = parseServerKeys(readRegularFile(path).bytes.toString('latin1'));
    return typeof keys === 'string' ? fault(keys) : { keys, faults: [] };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return fault(`cannot be read (${code ?? message})`);
  }
}

const noFilesOfInstance = {
  token_file: null,
  clients: null,
  jwt_keys: null,
  https_cert: null,
  https_key: null,
} as const;

const noFiles = Object.fromEntries(credentialKeys.map((key) => [key, null])) as CredentialFiles;

function passwordFile(values: Values, env: Environment): Pick<CredentialFiles, 'password_file'> {
  return { password_file: env.DBHTTPD_PASSWORD === undefined ? values.password_file : null };
}

/** The files that are read at the start and at every renewal. A file that the environment overrides is not read. */
function credentialFiles(values: Values, env: Environment): CredentialFiles {
  const named = credentialKeys.map((key) => [key, values[key]]);
  return Object.freeze({
    ...(Object.fromEntries(named) as CredentialFiles),
    ...passwordFile(values, env),
    token_file: env.DBHTTPD_TOKEN === undefined ? values.token_file : null,
  });
}

/** An empty variable would silently remove the guard. */
function findNoTokens(tokens: readonly string[] | null): readonly Addition[] {
  if (tokens?.length !== 0) return [];
  return [{ key: 'token', problem: 'is overridden by an empty DBHTTPD_TOKEN' }];
}

function findOpenSecrets(stats: Stats, values: Values): readonly Addition[] {
  if (!isOpenToOthers(stats)) return [];
  const problem = 'is in a file that is open to others (chmod o-rwx)';
  return (['password', 'token'] as const)
    .filter((key) => values[key] !== null && values[key] !== '')
    .map((key) => ({ key, problem }));
}

/** Files in the way of our own, and directories in which any user could put one. */
function findBadPlaces({ listen, pidfile, state_dir: state }: Values): readonly Addition[] {
  const found: Addition[] = [];
  if (pidfile !== null && mayOthersWrite(dirname(pidfile))) {
    const problem = 'is in a directory that others may write (chmod o-w)';
    found.push({ key: 'pidfile', problem });
  }
  if (state !== null && mayOthersWrite(state)) {
    found.push({
      key: 'state_dir',
      problem: 'is a directory that others may write to (chmod o-w)',
    });
  }
  const there = listen.kind === 'unix' ? lookAt(listen.path, lstatSync) : undefined;
  if (there !== undefined && !there.isSocket()) {
    found.push({ key: 'listen', problem: 'is the path of something that is not a socket' });
  }
  return found;
}

function mayOthersWrite(directory: string): boolean {
  const mode = lookAt(directory, statSync)?.mode ?? 0;
  return (mode & 0o002) !== 0 && (mode & 0o1000) === 0;
}

/** Undefined also for a path that cannot be reached: opening it reports why. */
function lookAt(path: string, look: (path: string) => Stats): Stats | undefined {
  try {
    return look(path);
  } catch {
    return undefined;
  }
}
