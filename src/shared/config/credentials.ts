// The files that hold a password, tokens, certificates and keys: read, judged, and read anew when an operator asks.
// Must not know the other settings, nor who uses what is read.
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { findAuthoritiesFault, findLapse, findPairFault } from './certificates.ts';
import type { Config, Sections } from './config.ts';
import { isBearerToken } from './config-conflicts.ts';
import type { OptionKey } from './options.ts';

/** The keys that name such files. */
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

/** Where they are; null: not set, or overridden by the environment. */
export type CredentialFiles = Readonly<Record<CredentialKey, string | null>>;

/** PEM texts for TLS towards MySQL; null: not set. */
export type TlsTexts = {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
};

/** PEM texts of a certificate and its key. */
export type KeyPair = { readonly cert: string; readonly key: string };

/** What can be replaced while an instance runs. */
export type Credentials = Pick<Config, 'password' | 'tokens' | 'tlsTexts' | 'httpsTexts'>;

/** Those of each section, in the sections' order. */
export type SectionCredentials = readonly [Credentials, ...Credentials[]];

/** One thing wrong with one file. Never holds what stands in it. */
export type CredentialFault = { readonly key: CredentialKey; readonly problem: string };

/** The same, of one of several sections. */
export type SectionFault = CredentialFault & { readonly section: string };

type Found = { readonly [K in keyof Credentials]: Credentials[K] | null };

/** Reads all files. What is not set, or is faulty, is null; faults are collected, never thrown. */
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
 * Reads the files of all sections anew. Where one is faulty, what it belongs to stays as it was, and the fault is told; so is a
 * certificate that does not serve.
 */
export function renewCredentials(sections: Sections): {
  readonly credentials: SectionCredentials;
  readonly faults: readonly SectionFault[];
  readonly lapses: readonly SectionFault[];
} {
  const faults: SectionFault[] = [];
  const lapses: SectionFault[] = [];
  const renew = (config: Config): Credentials => {
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
  // What the daemon has once is the first section's, read once.
  const { tokens, httpsTexts } = first;
  const rest = others.map((other) => ({ ...renew(other), tokens, httpsTexts }));
  return { credentials: [first, ...rest], faults, lapses };
}

/** The sections with what was read anew, frozen. */
export function withCredentials(
  [config, ...others]: Sections,
  [first, ...rest]: SectionCredentials,
): Sections {
  return [
    Object.freeze({ ...config, ...first }),
    ...others.map((other, index) => Object.freeze({ ...other, ...rest[index] })),
  ];
}

/** Tokens of a text, one a line or separated by commas. */
export function parseTokens(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((token) => token.trim())
    .filter((token) => token !== '');
}

/** Others must not read a secret, nor write what we obey. The group may: that is how a service account is let in. */
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
    const text = decode(bytes);
    const problem =
      secretKeys.has(key) && isOpenToOthers(stats)
        ? 'is open to others: take their rights away (chmod o-rwx)'
        : text === null
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

/** A pipe or a terminal would keep us waiting for whoever writes to it. @throws the system's error */
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

function decode(bytes: Buffer): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.includes('\0') ? null : text;
  } catch {
    return null;
  }
}

function tokensOf(text: string | null, faults: CredentialFault[]): readonly string[] | null {
  if (text === null) return null;
  const tokens = parseTokens(text);
  // Without a token the guard would let everybody in.
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
  // What serves one purpose is replaced as a whole or not at all.
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

/** Certificates that are whole but do not serve today: their successors may come while the gateway runs. */
export function findLapses(
  { tlsTexts, httpsTexts }: Pick<Config, 'tlsTexts' | 'httpsTexts'>,
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
