// The RSA keys of MySQL servers as PEM texts: taken out of a file, and found again.
// Pure. Must not know what is encrypted under them.
import { createPublicKey } from 'node:crypto';

const block = /-----BEGIN (RSA )?PUBLIC KEY-----[\s\S]*?-----END \1?PUBLIC KEY-----/g;
/** The shortest that MySQL makes, or takes. */
const leastBits = 2048;

/** The keys of a text, each as a PEM text of one form; or what is wrong with the text. It may hold those of several servers. */
export function parseServerKeys(text: string): readonly string[] | string {
  const keys: string[] = [];
  for (const [pem] of text.matchAll(block)) {
    const key = normalize(pem);
    if (key === null)
      return `holds a key that is broken, no RSA key, or shorter than ${leastBits} bits`;
    keys.push(key);
  }
  return keys.length === 0 ? 'holds no public key (PEM)' : keys;
}

/** The one of `keys` that a text of the same key stands for; null: none. */
export function findKey(text: string, keys: readonly string[]): string | null {
  const key = normalize(text);
  return key !== null && keys.includes(key) ? key : null;
}

function normalize(pem: string): string | null {
  try {
    const key = createPublicKey(pem);
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
    if (key.asymmetricKeyType !== 'rsa' || bits < leastBits) return null;
    return key.export({ type: 'spki', format: 'pem' }).toString();
  } catch {
    return null;
  }
}
