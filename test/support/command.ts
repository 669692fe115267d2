// The command as it is installed: the file that package.json names.
import { fileURLToPath } from 'node:url';

/** Its path in this checkout. */
export const command: string = fileURLToPath(
  new URL('../../program/supervisor/main.js', import.meta.url),
);
