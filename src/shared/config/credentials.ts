// Credentials: the files with passwords, tokens, certificates and keys are read, checked, and read again on SIGHUP.

import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { findAuthoritiesFault, findPairFault, listCertificates } from './certificates.ts';
import type { OptionKey } from './options.ts';

/** The keys that name files with credentials. */
export const credentialKeys = [
  'password_file',
  'token_file',
  'tls_ca',
  'tls_cert',
  'tls_key',
  'https_cert',
  'https_key',
] as const satisfies readonly OptionKey[];

type CredentialKey = (typeof credentialKeys)[number];

/** The paths of the files. Null: not set, or overridden by the environment. */
export type CredentialFiles = Readonly<Record<CredentialKey, string | null>>;

/** PEM texts for TLS towards MySQL. */
export type TlsTexts = {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
};

/** PEM texts of a certificate and its key. */
export type KeyPair = { readonly cert: string; readonly key: string };

/** The settings that can be replaced while an instance runs. */
export type Credentials = {
  readonly password: string;
  readonly tokens: readonly string[];
  /** The texts of the files that `tls_ca`, `tls_cert` and `tls_key` name. */
  readonly tlsTexts: TlsTexts;
  /** The texts of the files that `https_cert` and `https_key` name. Null: plain HTTP. */
  readonly httpsTexts: KeyPair | null;
};

/** A section's settings, as far as a renewal concerns them. */
type Renewable = Credentials & {
  readonly section: string;
  readonly credentialFiles: CredentialFiles;
};

/** The credentials of each section, in the sections' order. */
export type SectionCredentials = readonly [Credentials, ...Credentials[]];

/** A fault of one file. It never contains the file's contents. */
export type CredentialFault = { readonly key: CredentialKey; readonly problem: string };

/** A fault of a file of one of several sections. */
export type SectionFault = CredentialFault & { readonly section: string };

type Found = { readonly [K in keyof Credentials]: Credentials[K] | null };

/** Reads all files. A credential that is not set, or is faulty, is null. Collects faults and throws none. */
export function readCredentials(files: CredentialFiles): {
  readonly found: Found;
  readonly faults: readonly CredentialFault[];
} {
  const faults: CredentialFault[] = [];
  const read = (key: CredentialKey) => readCredential(files[key], key, faults);
  const found = {
    password: read('password_file')?.replace(/\r?\n$/, '') ?? null,
    tokens: tokensOf(read('token_file'), faults),
    tlsTexts: tlsTextsOf(read('tls_ca'), read('tls_cert'), read('tls_key'), faults),
    httpsTexts: keyPairOf(
      read('https_cert'),
      read('https_key'),
      ['https_cert', 'https_key'],
      faults,
    ),
  };
  return { found, faults };
}

/**
 * Reads the files of all sections again. If a file is faulty, or brings a certificate that is not valid now, what it belongs to remains as
 * it was.
 */
export function renewCredentials(sections: readonly [Renewable, ...Renewable[]]): {
  readonly credentials: SectionCredentials;
  readonly faults: readonly SectionFault[];
} {
  const faults: SectionFault[] = [];
  const renew = (config: Renewable): Credentials => {
    const { section } = config;
    const read = readCredentials(config.credentialFiles);
    // The daemon has one certificate for HTTPS, the first section's.
    const found = config === sections[0] ? read.found : { ...read.found, httpsTexts: null };
    const lapses = findNewLapses(found, config);
    const isLapsed = (key: string) => lapses.some((lapse) => lapse.key.startsWith(key));
    for (const fault of [...read.faults, ...lapses]) faults.push({ ...fault, section });
    return {
      password: found.password ?? config.password,
      tokens: found.tokens ?? config.tokens,
      tlsTexts: isLapsed('tls_') ? config.tlsTexts : (found.tlsTexts ?? config.tlsTexts),
      httpsTexts: isLapsed('https_') ? config.httpsTexts : (found.httpsTexts ?? config.httpsTexts),
    };
  };
  const [config, ...others] = sections;
  const first = renew(config);
  const { tokens, httpsTexts } = first;
  const rest = others.map((other) => ({ ...renew(other), tokens, httpsTexts }));
  return { credentials: [first, ...rest], faults };
}

/** Certificates that are not valid now, except those in use: nothing would be kept by refusing them. */
function findNewLapses(found: Found, current: Renewable): readonly CredentialFault[] {
  const tlsTexts = isSame(found.tlsTexts, current.tlsTexts) ? null : found.tlsTexts;
  const httpsTexts = isSame(found.httpsTexts, current.httpsTexts) ? null : found.httpsTexts;
  const { section } = current;
  return listCertificates([{ section, tlsTexts, httpsTexts }], Date.now()).flatMap(
    ({ key, lapse }) => (lapse === null ? [] : [{ key, problem: lapse }]),
  );
}

function isSame(one: object | null, other: object | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** The sections with new credentials, frozen. */
export function withCredentials<Section extends Credentials>(
  [config, ...others]: readonly [Section, ...Section[]],
  [first, ...rest]: SectionCredentials,
): readonly [Section, ...Section[]] {
  return [
    Object.freeze({ ...config, ...first }),
    ...others.map((other, index) => Object.freeze({ ...other, ...rest[index] })),
  ];
}

/** The tokens of a text, one per line or separated by commas. */
export function parseTokens(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((token) => token.trim())
    .filter((token) => token !== '');
}

/** Whether a text can be a bearer token (RFC 6750, section 2.1). */
export function isBearerToken(text: string): boolean {
  return /^[A-Za-z0-9._~+/-]+=*$/.test(text);
}

/** Whether users other than owner and group may read or write the file. The group may, because service accounts use it. */
export function isOpenToOthers(stats: Stats): boolean {
  return (stats.mode & 0o006) !== 0;
}

const secretKeys: ReadonlySet<CredentialKey> = new Set([
  'password_file',
  'token_file',
  'tls_key',
  'https_key',
]);

function readCredential(
  path: string | null,
  key: CredentialKey,
  faults: CredentialFault[],
): string | null {
  if (path === null) return null;
  try {
    const { bytes, stats } = readRegularFile(path);
    const text = decodeText(bytes);
    const problem =
      secretKeys.has(key) && isOpenToOthers(stats)
        ? 'is open to others: take their rights away (chmod o-rwx)'
        : text === null || text.includes('\0')
          ? 'is not a text in UTF-8'
          : null;
    if (problem === null) return text;
    faults.push({ key, problem });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    faults.push({ key, problem: `cannot be read (${code ?? message})` });
  }
  return null;
}

/** Reads a regular file only: a pipe or a terminal would block until something is written to it. @throws the system's error */
export function readRegularFile(path: string): { readonly bytes: Buffer; readonly stats: Stats } {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new Error('no regular file');
    return { bytes: readFileSync(fd), stats };
  } finally {
    closeSync(fd);
  }
}

/** The text of a file. Null: it is not UTF-8. */
export function decodeText(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function tokensOf(text: string | null, faults: CredentialFault[]): readonly string[] | null {
  if (text === null) return null;
  const tokens = parseTokens(text);
  // Without a token the guard would accept every request.
  const problem =
    tokens.length === 0
      ? 'contains no token'
      : tokens.every(isBearerToken)
        ? null
        : 'contains a character that a bearer token cannot have';
  if (problem === null) return tokens;
  faults.push({ key: 'token_file', problem });
  return null;
}

function tlsTextsOf(
  ca: string | null,
  cert: string | null,
  key: string | null,
  faults: CredentialFault[],
): TlsTexts | null {
  const problem = ca === null ? null : findAuthoritiesFault(ca);
  if (problem !== null) faults.push({ key: 'tls_ca', problem });
  const pair = keyPairOf(cert, key, ['tls_cert', 'tls_key'], faults);
  // The texts for one purpose are replaced together or not at all.
  if (faults.some((fault) => fault.key.startsWith('tls_'))) return null;
  return { ca, cert: pair?.cert ?? null, key: pair?.key ?? null };
}

function keyPairOf(
  cert: string | null,
  key: string | null,
  keys: readonly [CredentialKey, CredentialKey],
  faults: CredentialFault[],
): KeyPair | null {
  if (cert === null || key === null) return null;
  const fault = findPairFault(cert, key);
  if (fault === null) return { cert, key };
  faults.push({ key: fault.half === 'key' ? keys[1] : keys[0], problem: fault.problem });
  return null;
}

const minBytes = 32;
/** A larger file is a log or a disk that was named by mistake. */
const maxBytes = 64 * 1024;

/** A key, or what is wrong with its file. `problem` never contains the file's contents. */
export type SessionKey =
  | { readonly ok: true; readonly key: string }
  | { readonly ok: false; readonly problem: string };

/** Reads the key, which is every byte of the file, and returns it in base64 for messages between processes. */
export function readSessionKey(path: string): SessionKey {
  try {
    const { bytes, stats } = readRegularFile(path);
    const problem = isOpenToOthers(stats)
      ? 'is open to others: take their rights away (chmod o-rwx)'
      : bytes.length < minBytes
        ? `holds fewer than ${minBytes} bytes`
        : bytes.length > maxBytes
          ? `holds more than ${maxBytes} bytes`
          : null;
    return problem === null ? { ok: true, key: bytes.toString('base64') } : { ok: false, problem };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { ok: false, problem: `cannot be read (${code ?? message})` };
  }
}
