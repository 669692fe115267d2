// The version of the program whose code this is.
// Knows nothing else.
import { readFileSync } from 'node:fs';

const manifest = readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8');

/** As package.json has it. */
export const version: string = (JSON.parse(manifest) as { version: string }).version;
