// The list of a release's parts (an SBOM in CycloneDX's form), by `npm sbom`, and the checksums of its files.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** npm's list of parts, as far as it changes from run to run. */
type Parts = {
  readonly serialNumber: string;
  readonly metadata: {
    readonly timestamp: string;
    readonly component: Readonly<Record<string, unknown>>;
  };
};

/** Lists the npm packages that run, from the lock file, as JSON. Throws if npm fails. */
export function listParts(name: string, time: Date): string {
  const args = ['sbom', '--package-lock-only', '--omit=dev', '--sbom-format=cyclonedx'];
  const text = execFileSync('npm', args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 2 ** 26,
  });
  return `${JSON.stringify(settleParts(JSON.parse(text) as Parts, name, time), null, 2)}\n`;
}

/** The list with the package's name where npm writes that of the folder, and with a number and a time that depend on the sources only. */
export function settleParts<Given extends Parts>(parts: Given, name: string, time: Date): Given {
  const { component, ...metadata } = parts.metadata;
  const settled = {
    ...parts,
    serialNumber: '',
    metadata: { ...metadata, timestamp: time.toISOString(), component: { ...component, name } },
  };
  const digest = createHash('sha256').update(JSON.stringify(settled)).digest('hex');
  // The form of a UUID of version 8 (RFC 9562): its content is the maker's choice.
  const uuid = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-a${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  return { ...settled, serialNumber: `urn:uuid:${uuid}` };
}

/** The lines of `sha256sum` for these files of a folder. */
export function listSums(folder: string, names: readonly string[]): string {
  return names
    .map((name) => {
      const sum = createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex');
      return `${sum}  ${name}\n`;
    })
    .join('');
}
