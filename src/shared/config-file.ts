// The files behind a configuration: reads them, looks at their modes, and hands a Config or every fault on.
// Must not know which settings conflict, nor what they are for.
import { readFileSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { findAuthoritiesFault, findLapse, findPairFault } from './certificates.ts';
import { type Config, composeConfig, parseEntries, type Values, writtenKeys } from './config.ts';
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
  const additions: Addition[] = [];
  const password = outsidePassword(values, env, additions);
  const tokens = outsideTokens(values, env, additions);
  checkMode(read.stats, values, additions);
  const certificates = readCertificates(values, additions);
  checkCertificates(certificates, additions);
  const composed = composeConfig(values, writtenKeys(section), {
    section: name,
    configPath: file,
    password,
    tokens,
    workers: Math.min(processorCount(), mostWorkers),
    log: join(logDirectory(place), `dbhttpd-${name}.log`),
    pidfile: join(runDirectory(place), `dbhttpd-${name}.pid`),
  });
  const further = [...composed.faults, ...additions.map(withoutLine)];
  // A key that cannot be read conflicts with nothing yet: one fault a time and key.
  const faulty = new Set(faults.map((one) => one.key));
  const all = [...faults, ...further.filter((one) => !faulty.has(one.key))];
  if (all.length > 0) return invalid(all, composed.config.log);
  const warnings = locate(findLapses(certificates).map(withoutLine));
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

function readSecret(file: string, key: OptionKey, additions: Addition[]): string | null {
  const read = readText(file);
  const problem = !read.ok
    ? `cannot be read (${read.reason})`
    : isOpen(read.stats)
      ? 'is open to others: take their rights away (chmod o-rwx)'
      : read.text === null || read.text.includes('\0')
        ? 'is not a text in UTF-8'
        : null;
  if (problem !== null) additions.push({ key, problem });
  return read.ok ? read.text : null;
}

function outsidePassword(values: Values, env: Environment, additions: Addition[]): string | null {
  const given = env.DBHTTPD_PASSWORD;
  if (given !== undefined) return given;
  if (values.password_file === null) return null;
  return (
    readSecret(values.password_file, 'password_file', additions)?.replace(/\r?\n$/, '') ?? null
  );
}

function outsideTokens(values: Values, env: Environment, additions: Addition[]) {
  const given = env.DBHTTPD_TOKEN;
  const file = given === undefined ? values.token_file : null;
  const text = given ?? (file === null ? null : readSecret(file, 'token_file', additions));
  if (text === null) return null;
  const tokens = text
    .split(/[,\n]/)
    .map((token) => token.trim())
    .filter((token) => token !== '');
  // An empty variable would take the guard away without a word.
  const problem =
    given === undefined ? 'holds no token' : 'is overridden by an empty DBHTTPD_TOKEN';
  if (tokens.length === 0) additions.push({ key: file === null ? 'token' : 'token_file', problem });
  return tokens;
}

/** Others must not read a secret, nor write what we obey. The group may: that is how a service account is let in. */
function isOpen(stats: Stats): boolean {
  return (stats.mode & 0o006) !== 0;
}

function checkMode(stats: Stats, values: Values, additions: Addition[]): void {
  for (const key of ['password', 'token'] as const) {
    if (options[key].secret && values[key] !== null && values[key] !== '' && isOpen(stats)) {
      additions.push({ key, problem: 'stands in a file that is open to others (chmod o-rwx)' });
    }
  }
}

type CertificateKey = 'tls_ca' | 'tls_cert' | 'tls_key' | 'https_cert' | 'https_key';
type Texts = ReadonlyMap<CertificateKey, string>;

const pairs = [
  ['tls_cert', 'tls_key'],
  ['https_cert', 'https_key'],
] as const;

function readCertificates(values: Values, additions: Addition[]): Texts {
  const texts = new Map<CertificateKey, string>();
  for (const key of ['tls_ca', 'tls_cert', 'tls_key', 'https_cert', 'https_key'] as const) {
    const file = values[key];
    if (file === null) continue;
    try {
      texts.set(key, readFileSync(file, 'utf8'));
    } catch (error) {
      const reason = (error as NodeJS.ErrnoException).code ?? 'unreadable';
      additions.push({ key, problem: `cannot be read (${reason})` });
    }
  }
  return texts;
}

function checkCertificates(texts: Texts, additions: Addition[]): void {
  const authorities = texts.get('tls_ca');
  const problem = authorities === undefined ? null : findAuthoritiesFault(authorities);
  if (problem !== null) additions.push({ key: 'tls_ca', problem });
  for (const [cert, key] of pairs) {
    const [certificate, privateKey] = [texts.get(cert), texts.get(key)];
    if (certificate === undefined || privateKey === undefined) continue;
    const fault = findPairFault(certificate, privateKey);
    if (fault === null) continue;
    additions.push({ key: fault.half === 'key' ? key : cert, problem: fault.problem });
  }
}

/** Certificates that are whole but do not serve today: their successors may come while the gateway runs. */
function findLapses(texts: Texts): readonly Addition[] {
  const now = Date.now();
  return (['tls_ca', 'tls_cert', 'https_cert'] as const).flatMap((key) => {
    const text = texts.get(key);
    const problem =
      text === undefined ? null : findLapse(text, now, key === 'tls_ca' ? 'any' : 'first');
    return problem === null ? [] : [{ key, problem }];
  });
}
