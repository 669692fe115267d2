// Certificates as PEM texts: whether they can be used, with which key, and when.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** Which certificate of a text counts: the first one of a pair, which is its owner's, or any of a list to trust. */
export type Counting = 'first' | 'any';

/** A certificate that an instance uses, by the key that names its file. */
export type UsedCertificate = {
  readonly section: string;
  readonly key: 'tls_ca' | 'tls_cert' | 'https_cert';
  readonly expiresAtMs: number;
  /** Why it is not valid now; null: it is. */
  readonly lapse: string | null;
};

/** The certificates of one section; null: none. */
type SectionTexts = {
  readonly section: string;
  readonly tlsTexts: { readonly ca: string | null; readonly cert: string | null } | null;
  readonly httpsTexts: { readonly cert: string } | null;
};

/** Lists the certificates of all sections. HTTPS has one for all of them, the first section's. */
export function listCertificates(
  sections: readonly SectionTexts[],
  nowMs: number,
): readonly UsedCertificate[] {
  return sections.flatMap(({ section, tlsTexts, httpsTexts }, index) => {
    const texts = [
      ['tls_ca', tlsTexts?.ca ?? null, 'any'],
      ['tls_cert', tlsTexts?.cert ?? null, 'first'],
      ['https_cert', index === 0 ? (httpsTexts?.cert ?? null) : null, 'first'],
    ] as const;
    return texts.flatMap(([key, text, counting]) => {
      const expiresAtMs = text === null ? null : findExpiry(text, counting);
      if (text === null || expiresAtMs === null) return [];
      return [{ section, key, expiresAtMs, lapse: findLapse(text, nowMs, counting) }];
    });
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

/** Why a certificate is not valid at a time, with the date. Null: it is valid, or it is none. */
export function findLapse(certificates: string, nowMs: number, counting: Counting): string | null {
  const lapses = countedOf(certificates, counting).map((one) =>
    one === null ? null : lapseOf(one, nowMs),
  );
  return lapses.every((lapse) => lapse !== null) ? (lapses[0] ?? null) : null;
}

/** When a certificate expires, in milliseconds since 1970; of a list to trust the last one. Null: there is no certificate. */
export function findExpiry(certificates: string, counting: Counting): number | null {
  const expiries = countedOf(certificates, counting).map((one) => Date.parse(one?.validTo ?? ''));
  const known = expiries.filter((expiry) => !Number.isNaN(expiry));
  return known.length === 0 ? null : Math.max(...known);
}

function countedOf(certificates: string, counting: Counting): readonly (X509Certificate | null)[] {
  const all = parseCertificates(certificates);
  return counting === 'first' ? all.slice(0, 1) : all;
}

function lapseOf(certificate: X509Certificate, nowMs: number): string | null {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  if (nowMs > to) return `expired on ${new Date(to).toISOString()}`;
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
