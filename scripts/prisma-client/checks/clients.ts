// The generated client, through the gateway and directly on the server, and checks that hold for both.
import { after, test } from 'node:test';
import { PrismaMariaDb } from '@prisma/adapter-mariadb';
import { PrismaPlanetScale } from '@prisma/adapter-planetscale';
import { PrismaClient } from './generated/client.ts';
import { setting } from './setting.ts';

const opened: PrismaClient[] = [];
after(async () => {
  for (const client of opened) await client.$disconnect();
});

/** A client through the gateway at `url`. It ends with the file. */
export function connectThrough(url: string): PrismaClient {
  const client = new PrismaClient({ adapter: new PrismaPlanetScale({ url }) });
  opened.push(client);
  return client;
}

/** The client under test. */
export const prisma = connectThrough(setting.gateway);
/** The reference: the same client with MySQL's own protocol. */
export const straight = connectStraight();

function connectStraight(): PrismaClient {
  const { hostname: host, port, username: user, password, pathname } = new URL(setting.server);
  const client = new PrismaClient({
    adapter: new PrismaMariaDb({
      host,
      port: Number(port),
      user,
      password: decodeURIComponent(password),
      database: pathname.slice(1),
      connectionLimit: 10,
      allowPublicKeyRetrieval: true,
    }),
  });
  opened.push(client);
  return client;
}

/** Empties the tables, and makes their numbers start at 1. */
export async function emptyTables(): Promise<void> {
  for (const table of ['Line', '`Order`', 'Customer', 'Sample']) {
    await straight.$executeRawUnsafe(`delete from ${table}`);
    if (table !== 'Line')
      await straight.$executeRawUnsafe(`alter table ${table} auto_increment = 1`);
  }
}

/** One check of both clients, each time on empty tables. MySQL's own protocol gives the expected result. */
export function testBoth(promise: string, check: (client: PrismaClient) => Promise<void>): void {
  for (const [way, client] of [
    ['through the gateway', prisma],
    ['straight', straight],
  ] as const) {
    test(`${promise}, ${way}`, async () => {
      await emptyTables();
      await check(client);
    });
  }
}

/** A failure: Prisma's code, and the adapter's view of the server's error. */
export type Reported = {
  readonly code: string | undefined;
  readonly name: string;
  readonly message: string;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly cause: Readonly<Record<string, unknown>>;
};

/** The reason that a promise is rejected with. */
export async function failure(promise: Promise<unknown>): Promise<Reported> {
  const error = await promise.then(
    () => new Error('it succeeded'),
    (reason: unknown) => reason as Error,
  );
  const {
    code,
    name,
    message,
    meta = {},
  } = error as Error & {
    code?: string;
    meta?: Readonly<Record<string, unknown>>;
  };
  const { cause } = (meta.driverAdapterError ?? {}) as {
    cause?: Readonly<Record<string, unknown>>;
  };
  return { code, name, message, meta, cause: cause ?? {} };
}
