// The code of this program: its version, and a fingerprint of every file that a process may load.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const code = fileURLToPath(new URL('../../', import.meta.url));
const manifest = fileURLToPath(new URL('../../../../package.json', import.meta.url));
const fingerprintDigits = 12;

const fields = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string; homepage?: string };

/** The version in package.json. */
export const { version } = fields;

/** The public address of the documents; null: package.json has none. */
export const homepage = fields.homepage ?? null;

/** The code on disk at this moment, as `<version>-<fingerprint>`, or `<version>-unreadable` while the package is being replaced. */
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
