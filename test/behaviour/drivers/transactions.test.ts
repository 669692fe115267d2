// Transactions of today's drivers, as they come from npm: they never mix, never run outside, and end as their adapters expect.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Connection, Transaction } from '@planetscale/database';
import { PrismaPlanetScale } from '@prisma/adapter-planetscale';
import { eq, sql } from 'drizzle-orm';
import { int, mysqlTable } from 'drizzle-orm/mysql-core';
import { drizzle } from 'drizzle-orm/planetscale-serverless';
import { type Generated, Kysely } from 'kysely';
import { PlanetScaleDialect } from 'kysely-planetscale';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { createDriver, driverError, driverSettings, driverUrl } from '../../support/driver.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

const over = /transaction.*\(errno 1317\) \(sqlstate 70100\)$/s;

let database: Database;
let gateway: Gateway;
before(async () => {
  database = await startDatabase();
  await database.query(`
    create table notes (id int auto_increment primary key, who int not null, n int not null default 0) engine = innodb;
    create procedure commits() begin insert into notes (who) values (70); commit; end`);
  gateway = await startGateway({
    database,
    settings: {
      ...driverSettings,
      workers: 2,
      pool: 64,
      transaction_idle_timeout: '20s',
      max_wait: '60s',
      statement_timeout: '2m',
    },
  });
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
});
beforeEach(async () => {
  await database.query('delete from notes');
});

const written = async () => {
  const rows = await database.query('select who from notes order by who');
  return rows.map(({ who }) => Number(who));
};

const connect = (): Connection => createDriver(gateway).connection();

test('the driver commits the work of its function, and undoes it if the function throws', async () => {
  const client = createDriver(gateway);
  const made = await client.transaction(async (tx) => {
    const { insertId } = await tx.execute('insert into notes (who) values (?)', [1]);
    const { rows } = await tx.execute('select last_insert_id() as id, count(*) as n from notes');
    assert.deepEqual(rows, [{ id: insertId, n: '1' }]);
    assert.deepEqual(await written(), []);
    return insertId;
  });
  assert.match(made, /^\d+$/);
  await assert.rejects(
    client.transaction(async (tx) => {
      await tx.execute('insert into notes (who) values (2)');
      throw new Error('on purpose');
    }),
    /on purpose/,
  );
  assert.deepEqual(await written(), [1]);
});

test('sixty at once, with parallel statements inside, never mix', async () => {
  const client = createDriver(gateway);
  const one = (who: number) => async (tx: Transaction) => {
    await tx.execute('set @who = ?', [who]);
    const inserts = [1, 2, 3].map((n) =>
      tx.execute('insert into notes (who, n) values (@who, ?)', [n]),
    );
    await Promise.all(inserts);
    const { rows } = await tx.execute(
      'select count(*) as count, max(@who) as who from notes where who = @who',
    );
    const { count, who: found } = rows[0] ?? {};
    assert.deepEqual([Number(count), Number(found)], [3, who]);
    if (who % 4 === 0) throw new Error('undone');
  };
  const ends = await Promise.allSettled(
    Array.from({ length: 60 }, (_, index) => client.transaction(one(index + 1))),
  );
  const failed = ends.flatMap((end) =>
    end.status === 'rejected' && end.reason.message !== 'undone' ? [end.reason] : [],
  );
  assert.deepEqual(failed, []);
  const kept = Array.from({ length: 60 }, (_, index) => index + 1).filter((who) => who % 4 !== 0);
  assert.deepEqual(
    await written(),
    kept.flatMap((who) => [who, who, who]),
  );
});

test('an error of a statement leaves the transaction open, and values are safe in it', async () => {
  const text = "O'Neil \\' \" \\";
  await createDriver(gateway).transaction(async (tx) => {
    await tx.execute('insert into notes (id, who) values (1, 1)');
    const error = await driverError(tx.execute('insert into notes (id, who) values (1, 2)'));
    assert.match(error.message, /\(errno 1062\) \(sqlstate 23000\)$/);
    const { rows } = await tx.execute('select ? as said', [text]);
    assert.deepEqual(rows, [{ said: text }]);
  });
  assert.deepEqual(await written(), [1]);
});

test('a statement that would end it is refused; after its end everything fails up to ROLLBACK', async () => {
  const connection = connect();
  await connection.execute('BEGIN');
  await connection.execute('insert into notes (who) values (1)');
  const refused = await driverError(connection.execute('create table more (n int)'));
  assert.match(refused.message, /not allowed in a transaction/);
  await driverError(connection.execute('call commits()'));
  for (const statement of ['insert into notes (who) values (2)', 'COMMIT', 'select 1']) {
    assert.match((await driverError(connection.execute(statement))).message, over);
  }
  await connection.execute('ROLLBACK');
  await connection.execute('insert into notes (who) values (3)');
  assert.deepEqual(await written(), [1, 3, 70]);
});

test('one that only reads takes no CALL, which might end it and write', async () => {
  const session = connect();
  await session.execute('start transaction read only');
  const { message } = await driverError(session.execute('call commits()'));
  assert.match(message, /the transaction is read-only/);
  await session.execute('select who from notes');
  await session.execute('commit');
  assert.deepEqual(await written(), []);
});

test('drizzle: nested transactions are savepoints, and one of them may fail alone', async () => {
  const notes = mysqlTable('notes', {
    id: int('id').autoincrement().primaryKey(),
    who: int('who').notNull(),
    n: int('n').notNull().default(0),
  });
  const db = drizzle({ client: createDriver(gateway) });
  await db.transaction(
    async (tx) => {
      await tx.insert(notes).values({ who: 1 });
      await assert.rejects(
        tx.transaction(async (inner) => {
          await inner.insert(notes).values({ who: 2 });
          inner.rollback();
        }),
      );
      await tx.transaction(async (inner) => {
        await inner.insert(notes).values({ who: 3 });
      });
      await tx
        .update(notes)
        .set({ n: sql`${notes.n} + 1` })
        .where(eq(notes.who, 1));
    },
    { isolationLevel: 'serializable' },
  );
  assert.deepEqual(await written(), [1, 3]);
});

test('Kysely: a transaction with an isolation level', async () => {
  type Notes = { id: Generated<number>; who: number; n: Generated<number> };
  const db = new Kysely<{ notes: Notes }>({
    dialect: new PlanetScaleDialect({ url: driverUrl(gateway) }),
  });
  const run = (fails: boolean) =>
    db
      .transaction()
      .setIsolationLevel('read committed')
      .execute(async (trx) => {
        await trx
          .insertInto('notes')
          .values({ who: fails ? 9 : 5 })
          .execute();
        if (fails) throw new Error('on purpose');
        return trx.selectFrom('notes').select('who').execute();
      });
  assert.deepEqual(await run(false), [{ who: 5 }]);
  await assert.rejects(run(true), /on purpose/);
  assert.deepEqual(await written(), [5]);
});

test("Prisma's adapter: commit, rollback, isolation, and an error that it recognises", async () => {
  const adapter = await new PrismaPlanetScale({ url: driverUrl(gateway) }).connect();
  const ask = (text: string) => ({ sql: text, args: [], argTypes: [] });
  const first = await adapter.startTransaction('SERIALIZABLE');
  await first.executeRaw(ask('insert into notes (id, who) values (1, 1)'));
  await assert.rejects(
    first.executeRaw(ask('insert into notes (id, who) values (1, 2)')),
    ({ cause }: Error & { cause: { kind: string; originalCode: string } }) =>
      cause.kind === 'UniqueConstraintViolation' && cause.originalCode === '1062',
  );
  await first.commit();
  const second = await adapter.startTransaction();
  await second.executeRaw(ask('insert into notes (who) values (2)'));
  await second.rollback();
  assert.deepEqual(await written(), [1]);
});
