// The RSA keys of MySQL servers as PEM texts: parses a file of them, and finds a server's key among them. Pure.
import { createPublicKey } from 'node:crypto';

const block = /-----BEGIN (RSA )?PUBLIC KEY-----[\s\S]*?-----END \1?PUBLIC KEY-----/g;
/** The shortest key that MySQL makes or accepts. */
const minBits = 2048;

/** The keys in a text, each as a normalized PEM text, or what is wrong with the text. It may hold the keys of several servers. */
export function parseServerKeys(text: string): readonly string[] | string {
  const keys: string[] = [];
  for (const [pem] of text.matchAll(block)) {
    const key = normalize(pem);
    if (key === null)
      return `holds a key that is broken, no RSA key, or shorter than ${minBits} bits`;
    keys.push(key);
  }
  return keys.length === 0 ? 'holds no public key (PEM)' : keys;
}

/** The one of `keys` that is the same key as this text; null: none is. */
export function findKey(text: string, keys: readonly string[]): string | null {
  const key = normalize(text);
  return key !== null && keys.includes(key) ? key : null;
}

function normalize(pem: string): string | null {
  try {
    const key = createPublicKey(pem);
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
    if (key.asymmetricKeyType !== 'rsa' || bits < minBits) return null;
    return key.export({ type: 'spki', format: 'pem' }).toString();
  } catch {
    return null;
  }
}
