// One section of the file as settings: what it writes, the files that it names, and what its place in the daemon makes of them.
// Must not know which sections there are, nor what the settings are for.
import { lstatSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseServerKeys } from '../server-keys.ts';
import { type Candidates, candidateKey, formatCandidate } from './candidates.ts';
import {
  type Config,
  composeConfig,
  parseEntries,
  type Surroundings,
  type Values,
  withInstance,
  writtenKeys,
} from './config.ts';
import {
  type CredentialFiles,
  isOpenToOthers,
  parseTokens,
  readCredentials,
  readRegularFile,
} from './credentials.ts';
import { logDirectory, type Place, runDirectory, stateDirectory } from './default-paths.ts';
import { readSection, type TextFault } from './ini-section.ts';
import { isOfInstance, type OptionKey, options } from './options.ts';
import { processorCount } from './processor-count.ts';
import { readSessionKey } from './session-key.ts';

/** The file that all sections stand in. */
export type ConfigFile = { readonly path: string; readonly text: string; readonly stats: Stats };

/** Secrets of the environment, which go before those of the file. */
export type Secrets = {
  readonly DBHTTPD_PASSWORD?: string | undefined;
  readonly DBHTTPD_TOKEN?: string | undefined;
};

/** A section as it is written, and what is wrong with that. */
export type Written = {
  readonly name: string;
  readonly values: Values;
  readonly keys: ReadonlySet<string>;
  readonly faults: readonly TextFault[];
};

/** A section's settings; they are not to be used where there are faults, but for `log`. */
export type LoadedSection = {
  readonly values: Values;
  readonly config: Config;
  readonly faults: readonly TextFault[];
};

type Addition = { readonly key: OptionKey; readonly problem: string };

const mostWorkers = 8;

/** What a section writes; else why there is none of that name. */
export function readWritten({ text }: ConfigFile, name: string): Written | string {
  if (!/^[\p{L}\p{N}_-][\p{L}\p{N}._-]{0,63}$/u.test(name)) {
    return 'a section is named with letters, digits, dots, - and _, at most 64';
  }
  const section = readSection(text, name, isFreeText);
  if (section === null) return 'the file has no such section';
  return { name, keys: writtenKeys(section), ...parseEntries(section) };
}

function isFreeText(key: string): boolean {
  return key === 'password' || key === 'token' || key === 'init_sql';
}

/** The settings of the first section, which are the instance's too. */
export function loadInstance(
  written: Written,
  file: ConfigFile,
  env: Secrets,
  place: Place,
): LoadedSection {
  const { name, values } = written;
  const files = credentialFiles(values, env);
  const { found, faults } = readCredentials(files);
  const tokens = env.DBHTTPD_TOKEN === undefined ? null : parseTokens(env.DBHTTPD_TOKEN);
  const { session_key_file: keyFile } = values;
  const key = keyFile === null ? null : readSessionKey(keyFile);
  const serverKeys = readServerKeys(values.server_public_key);
  const around: Surroundings = {
    section: name,
    configPath: file.path,
    credentialFiles: files,
    password: env.DBHTTPD_PASSWORD ?? found.password,
    tokens: tokens ?? found.tokens,
    sessionKey: key?.ok === true ? key.key : null,
    tlsTexts: found.tlsTexts,
    serverKeys: serverKeys.keys,
    httpsTexts: found.httpsTexts,
    workers: Math.min(processorCount(), mostWorkers),
    log: join(logDirectory(place), `dbhttpd-${name}.log`),
    pidfile: join(runDirectory(place), `dbhttpd-${name}.pid`),
    stateDir: stateDirectory(place),
  };
  const additions = [
    ...faults,
    ...(key?.ok === false ? [{ key: 'session_key_file', problem: key.problem } as const] : []),
    ...serverKeys.faults,
    ...findNoTokens(tokens),
    ...findOpenSecrets(file.stats, values),
    ...findBadPlaces(values),
  ];
  return compose(written, values, around, () => true, additions);
}

/** The settings of a section that is served beside the first: what the daemon has once is the first's. */
export function loadBeside(
  written: Written,
  file: ConfigFile,
  first: LoadedSection,
): LoadedSection {
  const own = credentialFiles(written.values, {});
  const files = { ...own, token_file: null, https_cert: null, https_key: null };
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
  // Drivers name no section: they are given the first.
  const values: Values = { ...withInstance(written.values, first.values), drivers: 'off' };
  const additions = [
    ...faults,
    ...serverKeys.faults,
    ...findOpenSecrets(file.stats, written.values),
  ];
  return compose(written, values, around, (key) => !isOfInstance(key), additions);
}

/** What counts of a section that only lists more servers of the first one. */
const listedKeys: ReadonlySet<OptionKey> = new Set(['host', 'socket', 'password_file']);

/**
 * The settings of a section that lists more servers of the first one. To have another database, account or password is a fault:
 * the first one's are used.
 * @param known the servers that are listed already
 */
export function loadListed(
  written: Written,
  file: ConfigFile,
  first: LoadedSection,
  known: Candidates,
  env: Secrets,
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
  const whatElse = `is another one than that of [${section}], whose servers are listed here`;
  const accounts = (['database', 'user'] as const).filter((key) => {
    return values[key] !== null && first.values[key] !== null && values[key] !== first.values[key];
  });
  const password = values.password ?? passwordOfFile;
  const differs = isPasswordOfFile && password !== null && password !== first.config.password;
  const secret = values.password === null ? 'password_file' : 'password';
  const keys: readonly OptionKey[] = differs ? [...accounts, secret] : accounts;
  return keys.map((key) => ({ key, problem: whatElse }));
}

function compose(
  written: Written,
  values: Values,
  around: Surroundings,
  isJudged: (key: OptionKey) => boolean,
  additions: readonly Addition[],
): LoadedSection {
  const composed = composeConfig(values, written.keys, around, isJudged);
  const further = [...composed.faults, ...additions.map((one) => ({ ...one, line: null }))];
  // A key that cannot be read conflicts with nothing yet: one fault a time and key.
  const faulty = new Set(written.faults.map((one) => one.key));
  const faults = [...written.faults, ...further.filter((one) => !faulty.has(one.key))];
  return { values, config: composed.config, faults };
}

/** The keys are no secret: the file may be open to others. @param path null: not set */
function readServerKeys(path: string | null): {
  readonly keys: readonly string[];
  readonly faults: readonly Addition[];
} {
  if (path === null) return { keys: [], faults: [] };
  const found = readText(path);
  const keys = found.ok ? parseServerKeys(found.text) : found.problem;
  return typeof keys === 'string'
    ? { keys: [], faults: [{ key: 'server_public_key', problem: keys }] }
    : { keys, faults: [] };
}

function readText(path: string): { ok: true; text: string } | { ok: false; problem: string } {
  try {
    return { ok: true, text: readRegularFile(path).bytes.toString('latin1') };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { ok: false, problem: `cannot be read (${code ?? message})` };
  }
}

const noFiles: CredentialFiles = {
  password_file: null,
  token_file: null,
  tls_ca: null,
  tls_cert: null,
  tls_key: null,
  https_cert: null,
  https_key: null,
};

function passwordFile(values: Values, env: Secrets): Pick<CredentialFiles, 'password_file'> {
  return { password_file: env.DBHTTPD_PASSWORD === undefined ? values.password_file : null };
}

/** The files to read, and to read anew later: the environment goes before them, and stays. */
function credentialFiles(values: Values, env: Secrets): CredentialFiles {
  return Object.freeze({
    ...passwordFile(values, env),
    token_file: env.DBHTTPD_TOKEN === undefined ? values.token_file : null,
    tls_ca: values.tls_ca,
    tls_cert: values.tls_cert,
    tls_key: values.tls_key,
    https_cert: values.https_cert,
    https_key: values.https_key,
  });
}

/** An empty variable would take the guard away without a word. */
function findNoTokens(tokens: readonly string[] | null): readonly Addition[] {
  if (tokens?.length !== 0) return [];
  return [{ key: 'token', problem: 'is overridden by an empty DBHTTPD_TOKEN' }];
}

function findOpenSecrets(stats: Stats, values: Values): readonly Addition[] {
  if (!isOpenToOthers(stats)) return [];
  const problem = 'stands in a file that is open to others (chmod o-rwx)';
  return (['password', 'token'] as const)
    .filter((key) => options[key].secret && values[key] !== null && values[key] !== '')
    .map((key) => ({ key, problem }));
}

/** What lies in the way of our own files, or could be put there by anybody. */
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
    found.push({ key: 'listen', problem: 'is the path of something that is no socket' });
  }
  return found;
}

function mayOthersWrite(directory: string): boolean {
  const mode = lookAt(directory, statSync)?.mode ?? 0;
  return (mode & 0o002) !== 0 && (mode & 0o1000) === 0;
}

/** Undefined also for what cannot be reached: whoever opens it will say so. */
function lookAt(path: string, look: (path: string) => Stats): Stats | undefined {
  try {
    return look(path);
  } catch {
    return undefined;
  }
}
