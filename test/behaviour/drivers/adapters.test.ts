// drizzle, Kysely and Prisma's adapter, as they come from npm, before a real gateway.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PrismaPlanetScale } from '@prisma/adapter-planetscale';
import { desc, eq, sql } from 'drizzle-orm';
import {
  bigint,
  datetime,
  int,
  json,
  mysqlTable,
  varbinary,
  varchar,
} from 'drizzle-orm/mysql-core';
import { drizzle } from 'drizzle-orm/planetscale-serverless';
import { type Generated, Kysely } from 'kysely';
import { PlanetScaleDialect } from 'kysely-planetscale';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { createDriver, driverSettings, driverUrl } from '../../support/driver.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

let database: Database;
let gateway: Gateway;
before(async () => {
  database = await startDatabase();
  gateway = await startGateway({ database, settings: { ...driverSettings, workers: 2 } });
  await database.query(
    `create table orders (
      id bigint unsigned auto_increment primary key, customer varchar(40) not null, total int not null default 0,
      details json, at datetime(3), bytes varbinary(16), unique key by_customer (customer))`,
  );
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
});

test('drizzle writes, reads, changes and removes', async () => {
  const orders = mysqlTable('orders', {
    id: bigint('id', { mode: 'bigint', unsigned: true }).autoincrement().primaryKey(),
    customer: varchar('customer', { length: 40 }).notNull(),
    total: int('total').notNull().default(0),
    details: json('details').$type<{ lines: number[] }>(),
    at: datetime('at', { fsp: 3 }),
    bytes: varbinary('bytes', { length: 16 }),
  });
  const db = drizzle({ client: createDriver(gateway) });
  const at = new Date('2024-02-29T23:59:59.123Z');
  const [first] = await db
    .insert(orders)
    .values([
      { customer: "O'Neil \\", total: 7, details: { lines: [1, 2] }, at },
      { customer: 'é 🎉', total: 9 },
    ])
    .$returningId();
  assert.equal(typeof first?.id, 'number');
  const rows = await db.select().from(orders).orderBy(desc(orders.total));
  assert.deepEqual(
    rows.map(({ id: _id, ...rest }) => rest),
    [
      { customer: 'é 🎉', total: 9, details: null, at: null, bytes: null },
      { customer: "O'Neil \\", total: 7, details: { lines: [1, 2] }, at, bytes: null },
    ],
  );
  const changed = await db.update(orders).set({ total: 8 }).where(eq(orders.customer, "O'Neil \\"));
  assert.equal(changed.rowsAffected, 1);
  const [sum] = await db.select({ sum: sql<string>`sum(${orders.total})` }).from(orders);
  assert.equal(sum?.sum, '17');
  await assert.rejects(db.insert(orders).values({ customer: 'é 🎉' }), (error: Error) => {
    const cause = error.cause as { name: string; body: { code: string } };
    assert.deepEqual([cause.name, cause.body.code], ['DatabaseError', 'ALREADY_EXISTS']);
    return true;
  });
  await db.delete(orders);
  assert.deepEqual(await db.select().from(orders), []);
});

test('Kysely writes, reads, changes and removes', async () => {
  type Tables = {
    orders: { id: Generated<string>; customer: string; total: number; at: Date | null };
  };
  const db = new Kysely<Tables>({ dialect: new PlanetScaleDialect({ url: driverUrl(gateway) }) });
  try {
    const at = new Date('2024-02-29T23:59:59.123Z');
    const inserted = await db
      .insertInto('orders')
      .values([
        { customer: "O'Neil \\", total: 7, at },
        { customer: 'b', total: 9, at: null },
      ])
      .executeTakeFirstOrThrow();
    assert.equal(typeof inserted.insertId, 'bigint');
    assert.equal(inserted.numInsertedOrUpdatedRows, 2n);
    const rows = await db
      .selectFrom('orders')
      .select(['customer', 'total', 'at'])
      .orderBy('total')
      .execute();
    assert.deepEqual(rows, [
      { customer: "O'Neil \\", total: 7, at },
      { customer: 'b', total: 9, at: null },
    ]);
    const updated = await db
      .updateTable('orders')
      .set({ total: 1 })
      .where('customer', 'like', '%\\')
      .executeTakeFirst();
    assert.equal(updated.numUpdatedRows, 1n);
    const tables = await db.introspection.getTables();
    assert.ok(tables.some(({ name }) => name === 'orders'));
    const removed = await db.deleteFrom('orders').executeTakeFirst();
    assert.equal(removed.numDeletedRows, 2n);
  } finally {
    await db.destroy();
  }
});

/** An argument as Prisma's client describes it. */
const argument = (scalarType: string, dbType = '') =>
  ({ scalarType, dbType, arity: 'scalar' }) as never;

test("Prisma's adapter sends typed arguments and reads typed columns", async () => {
  const adapter = await new PrismaPlanetScale({ url: driverUrl(gateway) }).connect();
  const affected = await adapter.executeRaw({
    sql: 'INSERT INTO `orders` (`customer`,`total`,`details`,`at`,`bytes`) VALUES (?,?,?,?,?)',
    args: [
      "O'Neil \\",
      7,
      '{"lines": [1]}',
      '2024-02-29T23:59:59.123Z',
      Buffer.from([0, 255]).toString('base64'),
    ],
    argTypes: [
      argument('string'),
      argument('int'),
      argument('json'),
      argument('datetime', 'DATETIME'),
      argument('bytes'),
    ],
  });
  assert.equal(affected, 1);
  const result = await adapter.queryRaw({
    sql: 'SELECT id, customer, total, details, at, bytes, 1.50 AS price, CAST(1 AS DOUBLE) AS ratio FROM orders WHERE total = ?',
    args: [7],
    argTypes: [argument('int')],
  });
  assert.deepEqual(result.columnNames, [
    'id',
    'customer',
    'total',
    'details',
    'at',
    'bytes',
    'price',
    'ratio',
  ]);
  // ColumnTypeEnum of @prisma/driver-adapter-utils: Int64, Text, Int32, Json, DateTime, Bytes, Numeric, Double.
  assert.deepEqual(result.columnTypes, [1, 7, 0, 11, 10, 13, 4, 3]);
  const [[, ...values] = []] = result.rows as unknown[][];
  assert.deepEqual(values, [
    "O'Neil \\",
    7,
    '{"lines": [1]}',
    '2024-02-29 23:59:59.123',
    new Uint8Array([0, 255]),
    '1.50',
    1,
  ]);
  await adapter.dispose();
});
