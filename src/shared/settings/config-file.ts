// The files behind a configuration: reads them, looks at their modes, and hands a Config or every fault on.
// Must not know which settings conflict, nor what they are for.
import { lstatSync, readFileSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Config, composeConfig, parseEntries, type Values, writtenKeys } from './config.ts';
import {
  type CredentialFiles,
  findLapses,
  isOpenToOthers,
  parseTokens,
  readCredentials,
} from './credentials.ts';
import { logDirectory, type Place, runDirectory } from './default-paths.ts';
import { readSection, type TextFault } from './ini-section.ts';
import { type OptionKey, options } from './options.ts';
import { processorCount } from './processor-count.ts';

/** One thing wrong, naming file, section and key. Never holds a value. */
export type Fault = TextFault & { readonly file: string; readonly section: string };

/**
 * The outcome of reading a section. `warnings`: what a start can live with and somebody must see to. `log` is where an
 * invalid section wants its faults written, when it says so.
 */
export type Loaded =
  | { readonly kind: 'ok'; readonly config: Config; readonly warnings: readonly Fault[] }
  | { readonly kind: 'unreadable'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[]; readonly log: string | null };

/** A process's environment: the main files hand it down. */
export type Environment = Readonly<Record<string, string | undefined>>;
type Addition = { readonly key: OptionKey; readonly problem: string };

const mostWorkers = 8;

/** Reads the section of a file; every fault is found before it returns. Secrets in the environment go first. */
export function loadConfig(file: string, name: string, env: Environment, place: Place): Loaded {
  const read = readText(file);
  if (!read.ok) return { kind: 'unreadable', reason: `cannot read ${file}: ${read.reason}` };
  const locate = (faults: readonly TextFault[]): readonly Fault[] =>
    faults.map((fault) => ({ ...fault, file, section: name }));
  const invalid = (faults: readonly TextFault[], log: string | null): Loaded => {
    return { kind: 'invalid', faults: locate(faults), log };
  };
  const fault = (problem: string) => invalid([{ key: null, line: null, problem }], null);
  if (read.text === null) return fault('the file is not valid UTF-8');
  if (!/^[\p{L}\p{N}_-][\p{L}\p{N}._-]{0,63}$/u.test(name)) {
    return fault('a section is named with letters, digits, dots, - and _, at most 64');
  }
  const section = readSection(read.text, name, isFreeText);
  if (section === null) return fault('the file has no such section');

  const { values, faults } = parseEntries(section);
  const files = credentialFiles(values, env);
  const { found, faults: credentialFaults } = readCredentials(files);
  const additions: Addition[] = [...credentialFaults];
  const tokens = tokensOfEnvironment(env, additions);
  checkMode(read.stats, values, additions);
  checkPlaces(values, additions);
  const composed = composeConfig(values, writtenKeys(section), {
    section: name,
    configPath: file,
    credentialFiles: files,
    password: env.DBHTTPD_PASSWORD ?? found.password,
    tokens: tokens ?? found.tokens,
    tlsTexts: found.tlsTexts,
    httpsTexts: found.httpsTexts,
    workers: Math.min(processorCount(), mostWorkers),
    log: join(logDirectory(place), `dbhttpd-${name}.log`),
    pidfile: join(runDirectory(place), `dbhttpd-${name}.pid`),
  });
  const further = [...composed.faults, ...additions.map(withoutLine)];
  // A key that cannot be read conflicts with nothing yet: one fault a time and key.
  const faulty = new Set(faults.map((one) => one.key));
  const all = [...faults, ...further.filter((one) => !faulty.has(one.key))];
  if (all.length > 0) return invalid(all, composed.config.log);
  const warnings = locate(findLapses(composed.config).map(withoutLine));
  return { kind: 'ok', config: composed.config, warnings };
}

function withoutLine(one: Addition): TextFault {
  return { ...one, line: null };
}

/** A fault in one line: file, section, key, line, problem. */
export function formatFault({ file, section, key, line, problem }: Fault): string {
  const place = line === null ? '' : ` (line ${line})`;
  return `${file}: [${section}]${key === null ? '' : ` ${key.slice(0, 64)}`}${place}: ${problem}`;
}

function isFreeText(key: string): boolean {
  return key === 'password' || key === 'token' || key === 'init_sql';
}

type Read =
  | { readonly ok: true; readonly text: string | null; readonly stats: Stats }
  | { readonly ok: false; readonly reason: string };

/** Text of a file, null when it is not UTF-8; the reason is the system's own word for it. */
function readText(file: string): Read {
  try {
    const stats = statSync(file);
    const bytes = readFileSync(file);
    try {
      return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), stats };
    } catch {
      return { ok: true, text: null, stats };
    }
  } catch (error) {
    return { ok: false, reason: (error as NodeJS.ErrnoException).code ?? 'unreadable' };
  }
}

/** The files to read, and to read anew later: the environment goes before them, and stays. */
function credentialFiles(values: Values, env: Environment): CredentialFiles {
  return Object.freeze({
    password_file: env.DBHTTPD_PASSWORD === undefined ? values.password_file : null,
    token_file: env.DBHTTPD_TOKEN === undefined ? values.token_file : null,
    tls_ca: values.tls_ca,
    tls_cert: values.tls_cert,
    tls_key: values.tls_key,
    https_cert: values.https_cert,
    https_key: values.https_key,
  });
}

function tokensOfEnvironment(env: Environment, additions: Addition[]): readonly string[] | null {
  if (env.DBHTTPD_TOKEN === undefined) return null;
  const tokens = parseTokens(env.DBHTTPD_TOKEN);
  // An empty variable would take the guard away without a word.
  if (tokens.length === 0) {
    additions.push({ key: 'token', problem: 'is overridden by an empty DBHTTPD_TOKEN' });
  }
  return tokens;
}

function checkMode(stats: Stats, values: Values, additions: Addition[]): void {
  for (const key of ['password', 'token'] as const) {
    if (
      options[key].secret &&
      values[key] !== null &&
      values[key] !== '' &&
      isOpenToOthers(stats)
    ) {
      additions.push({ key, problem: 'stands in a file that is open to others (chmod o-rwx)' });
    }
  }
}

/** What lies in the way of our own files, or could be put there by anybody. */
function checkPlaces({ listen, pidfile }: Values, additions: Addition[]): void {
  const mode = pidfile === null ? 0 : (lookAt(dirname(pidfile), statSync)?.mode ?? 0);
  if ((mode & 0o002) !== 0 && (mode & 0o1000) === 0) {
    additions.push({
      key: 'pidfile',
      problem: 'is in a directory that others may write (chmod o-w)',
    });
  }
  const there = listen.kind === 'unix' ? lookAt(listen.path, lstatSync) : undefined;
  if (there !== undefined && !there.isSocket()) {
    additions.push({ key: 'listen', problem: 'is the path of something that is no socket' });
  }
}

/** Undefined also for what cannot be reached: whoever opens it will say so. */
function lookAt(path: string, look: (path: string) => Stats): Stats | undefined {
  try {
    return look(path);
  } catch {
    return undefined;
  }
}
