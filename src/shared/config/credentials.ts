// Credentials: the files with passwords, tokens, certificates and keys are read, checked, and read again on SIGHUP.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { createSecureContext } from 'node:tls';
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
 * Reads the files of all sections again. If a file is faulty, the credential that it belongs to remains as it was. `lapses`: certificates
 * that have expired or are not valid yet.
 */
export function renewCredentials(sections: readonly [Renewable, ...Renewable[]]): {
  readonly credentials: SectionCredentials;
  readonly faults: readonly SectionFault[];
  readonly lapses: readonly SectionFault[];
} {
  const faults: SectionFault[] = [];
  const lapses: SectionFault[] = [];
  const renew = (config: Renewable): Credentials => {
    const { section } = config;
    const read = readCredentials(config.credentialFiles);
    const { found } = read;
    const renewed = {
      password: found.password ?? config.password,
      tokens: found.tokens ?? config.tokens,
      tlsTexts: found.tlsTexts ?? config.tlsTexts,
      httpsTexts: found.httpsTexts ?? config.httpsTexts,
    };
    for (const fault of read.faults) faults.push({ ...fault, section });
    const ofDaemon = config === sections[0];
    for (const lapse of findLapses(ofDaemon ? renewed : { ...renewed, httpsTexts: null })) {
      lapses.push({ ...lapse, section });
    }
    return renewed;
  };
  const [config, ...others] = sections;
  const first = renew(config);
  // The daemon has one set of these, the first section's.
  const { tokens, httpsTexts } = first;
  const rest = others.map((other) => ({ ...renew(other), tokens, httpsTexts }));
  return { credentials: [first, ...rest], faults, lapses };
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
      ? 'holds no token'
      : tokens.every(isBearerToken)
        ? null
        : 'holds a character that no bearer token may have';
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

/** Certificates that are intact but expired or not valid yet. New ones may arrive while the gateway runs. */
export function findLapses(
  { tlsTexts, httpsTexts }: Pick<Credentials, 'tlsTexts' | 'httpsTexts'>,
  nowMs = Date.now(),
): readonly CredentialFault[] {
  const looked = [
    ['tls_ca', tlsTexts.ca, 'any'],
    ['tls_cert', tlsTexts.cert, 'first'],
    ['https_cert', httpsTexts?.cert ?? null, 'first'],
  ] as const;
  return looked.flatMap(([key, text, which]) => {
    const problem = text === null ? null : findLapse(text, nowMs, which);
    return problem === null ? [] : [{ key, problem }];
  });
}

/** A fault of one half of a pair. `problem` contains neither the file's name nor any part of the key. */
export type PairFault = { readonly half: 'certificate' | 'key'; readonly problem: string };

const block = /-----BEGIN ([A-Z0-9 ]*)CERTIFICATE-----[\s\S]*?-----END \1CERTIFICATE-----/g;
const noCertificate = 'holds no PEM certificate';

/** Why a certificate (with its chain) and a key cannot be used together. Ignores dates. */
export function findPairFault(certificates: string, key: string): PairFault | null {
  const chain = parseCertificates(certificates);
  const [leaf] = chain;
  if (leaf === undefined) return { half: 'certificate', problem: noCertificate };
  if (chain.includes(null)) return { half: 'certificate', problem: 'holds a broken certificate' };
  const parsed = parseKey(key);
  if (typeof parsed === 'string') return { half: 'key', problem: parsed };
  if (leaf?.checkPrivateKey(parsed) !== true) {
    return { half: 'certificate', problem: 'and its key do not belong together' };
  }
  try {
    createSecureContext({ cert: certificates, key });
    return null;
  } catch (error) {
    // OpenSSL's security level rejects it: `ee key too small`, `ca md too weak`.
    return { half: 'certificate', problem: `is refused by TLS (${reasonOf(error)})` };
  }
}

/** Why a text is no list of certificates to trust. Node itself accepts any text and then trusts no certificate. */
export function findAuthoritiesFault(certificates: string): string | null {
  const all = parseCertificates(certificates);
  if (all.length === 0) return noCertificate;
  return all.includes(null) ? 'holds a broken certificate' : null;
}

/**
 * Why a certificate is not valid at a time, with the date. Null: it is valid, or it is none. In a pair only the first certificate counts,
 * which is the owner's. In a list to trust, one valid certificate is enough.
 */
export function findLapse(
  certificates: string,
  nowMs: number,
  which: 'first' | 'any',
): string | null {
  const all = parseCertificates(certificates);
  const lapses = (which === 'first' ? all.slice(0, 1) : all).map((one) =>
    one === null ? null : lapseOf(one, nowMs),
  );
  return lapses.every((lapse) => lapse !== null) ? (lapses[0] ?? null) : null;
}

function lapseOf(certificate: X509Certificate, nowMs: number): string | null {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  if (nowMs > to) return `has expired on ${new Date(to).toISOString()}`;
  if (nowMs < from) return `is not valid before ${new Date(from).toISOString()}`;
  return null;
}

/** Every certificate of a text. Null: it cannot be read. */
function parseCertificates(text: string): readonly (X509Certificate | null)[] {
  return [...text.matchAll(block)].map(([pem]) => {
    try {
      return new X509Certificate(pem);
    } catch {
      return null;
    }
  });
}

function parseKey(key: string): KeyObject | string {
  // Both forms of an encrypted key contain this word. Node's error for such a key has no code of its own.
  if (key.includes('ENCRYPTED')) return 'is encrypted: a daemon cannot ask for the passphrase';
  try {
    return createPrivateKey(key);
  } catch {
    return 'holds no PEM private key';
  }
}

function reasonOf(error: unknown): string {
  const { reason, code } = error as { reason?: string; code?: string };
  return reason ?? code ?? 'unknown reason';
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
