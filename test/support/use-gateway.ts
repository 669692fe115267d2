// The gateway and the database of a test file or suite, in one line instead of hooks: started before its tests, stopped after them.
import { after, before } from 'node:test';
import { type Database, startDatabase } from './database/mariadb.ts';
import { type ProxiedDatabase, startProxiedDatabase } from './database/proxied-database.ts';
import { type Gateway, startGateway, type Target } from './gateway.ts';
import type { Settings } from './ini-text.ts';
import { attachSharedGateway } from './shared-gateway.ts';

/** The parts that a file has started. Use them only in tests and hooks. */
export type InUse = {
  readonly gateway: Gateway;
  readonly database: Database;
};

/** The options of the gateway and its database. */
export type Wish = {
  /** Further arguments of a private server, which the file may freeze, halt and restart; an empty list is a private server too. */
  readonly serverArguments?: readonly string[];
  /** Runs once, before the gateway starts. */
  readonly prepare?: (database: Database) => Promise<void>;
  /** Runs once, when all has started. Another `before` of the file would not wait for it: node starts those of one level together. */
  readonly ready?: () => Promise<void>;
  /** Further sections before the same database, with their settings: cheaper than further gateways. Requests name them, by `SERVER` or `section`. */
  readonly sections?: Readonly<Record<string, Settings>>;
} & Omit<Parameters<typeof startGateway>[0], 'database' | 'settings' | 'beside'>;

/**
 * Starts a gateway with these settings and a separate database. Call it at the top of a file or of a suite. Its hooks stop both, whatever
 * fails.
 */
export function useGateway(settings: Settings = {}, wish: Wish = {}): InUse {
  return use(settings, wish, async (database) => ({ target: database, stop: async () => {} }));
}

/** The same with a fault proxy between the gateway and its database. */
export function useProxiedGateway(
  settings: Settings = {},
  wish: Wish = {},
): InUse & { readonly proxy: ProxiedDatabase } {
  return use(settings, wish, startProxiedDatabase);
}

/** The link between gateway and database, as the gateway sees it. */
type Link = { readonly target: Target; readonly stop: () => Promise<void> };

function use<Between extends Link>(
  settings: Settings,
  { serverArguments, prepare, ready, sections = {}, ...further }: Wish,
  connect: (database: Database) => Promise<Between>,
): InUse & { readonly proxy: Between } {
  let database: Database | undefined;
  let between: Between | undefined;
  let gateway: Gateway | undefined;
  before(async () => {
    database = await openDatabase(serverArguments);
    await prepare?.(database);
    between = await connect(database);
    const { target } = between;
    const beside = Object.fromEntries(
      Object.entries(sections).map(([name, own]) => [name, { database: target, settings: own }]),
    );
    gateway = await startGateway({ database: target, settings, beside, ...further });
    await ready?.();
  });
  after(() => stopAll([gateway, between, database]));
  return {
    gateway: later(() => gateway),
    database: later(() => database),
    proxy: later(() => between),
  };
}

/** A database of the file's own, for tests that start their gateways themselves. */
export function useDatabase(
  wish: Pick<Wish, 'serverArguments' | 'prepare' | 'ready'> = {},
): Database {
  let database: Database | undefined;
  before(async () => {
    database = await openDatabase(wish.serverArguments);
    await wish.prepare?.(database);
    await wish.ready?.();
  });
  after(() => stopAll([database]));
  return later(() => database);
}

/**
 * The gateway that all files of a folder share, and a separate database for this file on the same server. The gateway's current database is
 * another one, so statements name the file's own (`${database.name}.orders`). For tests that neither change the gateway nor count what it
 * does.
 */
export function useSharedGateway(wish: Pick<Wish, 'prepare' | 'ready'> = {}): InUse {
  let database: Database | undefined;
  let gateway: Gateway | undefined;
  before(async () => {
    database = await openDatabase(undefined);
    await wish.prepare?.(database);
    gateway = await attachSharedGateway(database);
    await wish.ready?.();
  });
  after(() => stopAll([gateway, database]));
  return { gateway: later(() => gateway), database: later(() => database) };
}

function openDatabase(serverArguments: readonly string[] | undefined): Promise<Database> {
  return startDatabase(serverArguments === undefined ? {} : { args: serverArguments });
}

/** Stops one after the other, all of them even when one fails, and then fails with the first failure. */
async function stopAll(
  started: readonly ({ readonly stop: () => Promise<void> } | undefined)[],
): Promise<void> {
  const failures: unknown[] = [];
  for (const one of started) {
    await one?.stop().catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}

/** An object that becomes another one when a hook has made it; until then every use of it throws. */
function later<Made extends object>(get: () => Made | undefined): Made {
  const made = () => {
    const found = get();
    if (found === undefined) throw new Error('not started yet: use it inside of tests and hooks');
    return found;
  };
  return new Proxy({} as Made, {
    get: (_, key) => Reflect.get(made(), key),
    has: (_, key) => Reflect.has(made(), key),
    ownKeys: () => Reflect.ownKeys(made()),
    getOwnPropertyDescriptor: (_, key) => {
      const found = Reflect.getOwnPropertyDescriptor(made(), key);
      return found && { ...found, configurable: true };
    },
  });
}
