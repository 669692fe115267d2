// One gateway for all files of a folder: the runner starts and stops it, the files use it. A file that runs alone starts one for itself.
import { basename, dirname } from 'node:path';
import type { Database } from './database/mariadb.ts';
import { type Gateway, openGateway, type Place, startGateway } from './gateway.ts';

/** Folders of test/behaviour with the places of their gateways, as JSON. */
const variable = 'DBHTTPD_TEST_GATEWAYS';
const settings = { workers: 2, pool: 4 };

/** The gateways of a run's folders. */
export type SharedGateways = {
  /** For the environment of the test files. */
  readonly env: Readonly<Record<string, string>>;
  readonly stop: () => Promise<void>;
};

/** Starts one gateway for each folder before this database. The caller stops them. */
export async function startSharedGateways(
  folders: readonly string[],
  database: Database,
): Promise<SharedGateways> {
  const gateways = await Promise.all(
    folders.map(async (folder) => ({
      folder,
      gateway: await startGateway({ database, settings }),
    })),
  );
  const places = gateways.map(({ folder, gateway }) => [folder, gateway.place] as const);
  return {
    env: { [variable]: JSON.stringify(Object.fromEntries(places)) },
    stop: async () => {
      for (const { gateway } of gateways) await gateway.stop();
    },
  };
}

/** The gateway of the running test file's folder; stopping it ends it only if this process has started it. */
export async function attachSharedGateway(database: Database): Promise<Gateway> {
  const places = JSON.parse(process.env[variable] ?? '{}') as Readonly<Record<string, Place>>;
  const place = places[basename(dirname(process.argv[1] ?? ''))];
  if (place === undefined) return startGateway({ database, settings });
  return { ...openGateway(place), stop: async () => {} };
}
