// Which code this is: the package's version, and a fingerprint of every file of it that a process may load.
// Must not know who compares it.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { version } from './version.ts';

const code = fileURLToPath(new URL('../../', import.meta.url));
const manifest = fileURLToPath(new URL('../../../../package.json', import.meta.url));
const fingerprintDigits = 12;

/** The code on disk at this moment, as `<version>-<fingerprint>`. A package that is just being replaced has none of ours. */
export function readBuild(): string {
  const hash = createHash('sha256');
  try {
    // The manifest pins every dependency's version.
    hash.update(readFileSync(manifest));
    for (const name of readdirSync(code, { recursive: true, encoding: 'utf8' }).sort()) {
      if (/\.(?:js|wasm)$/.test(name)) hash.update(`${name}\n`).update(readFileSync(code + name));
    }
  } catch {
    return `${version}-unreadable`;
  }
  return `${version}-${hash.digest('hex').slice(0, fingerprintDigits)}`;
}
