// Credentials: the files with passwords, tokens, clients, certificates and keys are read, checked, and read again on SIGHUP.

import type { Clients } from '../clients/client.ts';
import {
  type Access,
  describeExposure,
  type Exposing,
  type FaultPlace,
  readAccess,
  readJwtKeys,
} from './access.ts';
import { findAuthoritiesFault, findPairFault, listCertificates } from './certificates.ts';
import { isTokenShared } from './clients-file.ts';
import type { OptionKey } from './options.ts';
import { isOpenToOthers, readRegularFile, readText } from './regular-file.ts';

/** The keys that name files with credentials. */
export const credentialKeys = [
  'password_file',
  'token_file',
  'clients',
  'jwt_keys',
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
  /** The first section's. Null: `clients` is not set, and every accepted request belongs to the client `default`. */
  readonly access: Access | null;
  /** The texts of the files that `tls_ca`, `tls_cert` and `tls_key` name. */
  readonly tlsTexts: TlsTexts;
  /** The texts of the files that `https_cert` and `https_key` name. Null: plain HTTP. */
  readonly httpsTexts: KeyPair | null;
};

/** A section's settings, as far as a renewal concerns them. */
type Renewable = Credentials &
  Exposing & {
    readonly section: string;
    readonly credentialFiles: CredentialFiles;
  };

/** The credentials of each section, in the sections' order. */
export type SectionCredentials = readonly [Credentials, ...Credentials[]];

/** A fault of one file, which contains no secret. `inside`: its place in the file; null: it is a fault of the file as a whole. */
export type CredentialFault = {
  readonly key: CredentialKey;
  readonly problem: string;
  readonly inside: FaultPlace | null;
};

/** A fault of a file of one of several sections. */
export type SectionFault = CredentialFault & { readonly section: string };

type FileCredentials = Omit<Credentials, 'access'>;
type Found = { readonly [K in keyof FileCredentials]: FileCredentials[K] | null };

/**
 * Reads all files except those of `clients` and `jwt_keys`, which `readAccess` reads. A credential that is not set, or is faulty, is null.
 * Collects faults and throws none.
 */
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
 * it was. `clients` and `jwt_keys` are replaced together.
 * @param mayReplace whether clients without faults of their own may take the place of those in force
 */
export function renewCredentials(
  sections: readonly [Renewable, ...Renewable[]],
  mayReplace: (clients: Clients) => boolean = () => true,
): {
  readonly credentials: SectionCredentials;
  readonly faults: readonly SectionFault[];
} {
  const faults: SectionFault[] = [];
  const renew = (config: Renewable): FileCredentials => {
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
  const own = renew(config);
  const served = sections.map(({ section }) => section);
  const renewed = renewAccess(config, served, own.tokens, mayReplace);
  for (const fault of renewed.faults) faults.push({ ...fault, section: config.section });
  const { access, tokens } = renewed;
  const first = { ...own, tokens, access };
  const { httpsTexts } = first;
  const rest = others.map((other) => ({ ...renew(other), tokens, httpsTexts, access }));
  return { credentials: [first, ...rest], faults };
}

/** @param tokens those that the first section has from now on, unless a client has one of them */
function renewAccess(
  config: Renewable,
  served: readonly string[],
  tokens: readonly string[],
  mayReplace: (clients: Clients) => boolean,
): Pick<Credentials, 'access' | 'tokens'> & { readonly faults: readonly CredentialFault[] } {
  const setting = { served, tokens, exposure: describeExposure(config) };
  const { access: found, faults } = readAccess(config.credentialFiles, setting);
  const access = found !== null && mayReplace(found.clients) ? found : config.access;
  if (access === null || !isTokenShared(access.clients, tokens)) return { access, tokens, faults };
  // The clients stay as they were, so a new token must not be one of theirs.
  const problem = 'holds a token of a client';
  return {
    access,
    tokens: config.tokens,
    faults: [...faults, { key: 'token_file', problem, inside: null }],
  };
}

/** Reads `jwt_keys` again, and nothing else. `access` null: the keys are the same as before, or the file is faulty. */
export function renewJwtKeys({ access, section, credentialFiles }: Renewable): {
  readonly access: Access | null;
  readonly faults: readonly SectionFault[];
} {
  const { keys, faults } = readJwtKeys(credentialFiles);
  const isNew = access !== null && keys !== null && !isSame(keys, access.jwtKeys);
  return {
    access: isNew ? { ...access, jwtKeys: keys } : null,
    faults: faults.map((fault) => ({ ...fault, section })),
  };
}

/** Certificates that are not valid now, except those in use: nothing would be kept by refusing them. */
function findNewLapses(found: Found, current: Renewable): readonly CredentialFault[] {
  const tlsTexts = isSame(found.tlsTexts, current.tlsTexts) ? null : found.tlsTexts;
  const httpsTexts = isSame(found.httpsTexts, current.httpsTexts) ? null : found.httpsTexts;
  const { section } = current;
  return listCertificates([{ section, tlsTexts, httpsTexts }], Date.now()).flatMap(
    ({ key, lapse }) => (lapse === null ? [] : [{ key, problem: lapse, inside: null }]),
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
  const read = readText(path, secretKeys.has(key) ? 'read or write' : 'any');
  if (read.ok) return read.text;
  faults.push({ key, problem: read.problem, inside: null });
  return null;
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
  faults.push({ key: 'token_file', problem, inside: null });
  return null;
}

function tlsTextsOf(
  ca: string | null,
  cert: string | null,
  key: string | null,
  faults: CredentialFault[],
): TlsTexts | null {
  const problem = ca === null ? null : findAuthoritiesFault(ca);
  if (problem !== null) faults.push({ key: 'tls_ca', problem, inside: null });
  const pair = keyPairOf(cert, key, ['tls_cert', 'tls_key'], faults);
  // The texts for one purpose are replaced together or not at all.
  if (faults.some((fault) => fault.key.startsWith('tls_'))) return null;
  return { ca, cert: pair?.cert ?? null, key: pair?.key ?? null };
}

function keyPairOf(
  cert: string | null,
  privateKey: string | null,
  keys: readonly [CredentialKey, CredentialKey],
  faults: CredentialFault[],
): KeyPair | null {
  if (cert === null || privateKey === null) return null;
  const fault = findPairFault(cert, privateKey);
  if (fault === null) return { cert, key: privateKey };
  const key = fault.half === 'key' ? keys[1] : keys[0];
  faults.push({ key, problem: fault.problem, inside: null });
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
