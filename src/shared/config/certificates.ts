// Certificates and keys as PEM texts: whether they can be used, and when.
// Pure. Must not know where a text comes from, nor what it is for.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** What is wrong with one half of a pair. `problem` names neither a file nor anything of the key. */
export type PairFault = { readonly half: 'certificate' | 'key'; readonly problem: string };

const block = /-----BEGIN ([A-Z0-9 ]*)CERTIFICATE-----[\s\S]*?-----END \1CERTIFICATE-----/g;
const noCertificate = 'holds no PEM certificate';

/** Why a certificate (with its chain) and a key cannot be used together; null: they can. Dates are not looked at. */
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
    // What OpenSSL's security level does not take: `ee key too small`, `ca md too weak`.
    return { half: 'certificate', problem: `is refused by TLS (${reasonOf(error)})` };
  }
}

/** Why a text is no list of certificates to trust; null: it is. Node itself would take anything, and trust nobody. */
export function findAuthoritiesFault(certificates: string): string | null {
  const all = parseCertificates(certificates);
  if (all.length === 0) return noCertificate;
  return all.includes(null) ? 'holds a broken certificate' : null;
}

/**
 * Why the certificate does not serve at a moment, with the date; null: it does, or it is none. Of a pair only the first
 * one counts, its owner's; of a list to trust, any that serves is enough.
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

/** Every certificate of a text; null for one that cannot be read. */
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
  // In both of its forms an encrypted key says so; node's error for it has no code of its own.
  if (key.includes('ENCRYPTED')) return 'is encrypted: nobody is there to type its passphrase';
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
