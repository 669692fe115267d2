// Prisma from npm, in the versions of the lock file in this folder.
import { installCached } from '../support/cached-packages.ts';

/** The folder of packages. Installs them if they are missing or of other versions. Rejects with npm's output. */
export function installPrisma(say: (line: string) => void): Promise<string> {
  return installCached(
    {
      name: 'prisma',
      wanted: 'scripts/prisma-client',
      variable: 'DBHTTPD_PRISMA_DIR',
      // The packages' install scripts would download engines that the client does not use.
      npmOptions: ['--ignore-scripts', '--omit=optional', '--omit=peer'],
    },
    say,
  );
}
