// A table of consecutive numbers, for statements that need many rows. Only MariaDB knows seq_1_to_….
import type { Database } from './mariadb.ts';

/** The number of rows of the table. */
export const maxNumbers = 30_000;

/** Creates the table `numbers`, whose column `seq` has 1 to 30,000. For more rows, join it with itself. */
export async function createNumbers(database: Database): Promise<void> {
  await database.query('create table numbers (seq bigint unsigned primary key)');
  const digits = Array.from({ length: 10 }, (_, digit) => `select ${digit} as d`).join(
    ' union all ',
  );
  await database.query(
    `insert into numbers with digit as (${digits})
       select 1 + a.d * 10000 + b.d * 1000 + c.d * 100 + e.d * 10 + f.d
       from digit a, digit b, digit c, digit e, digit f where a.d * 10000 < ?`,
    [maxNumbers],
  );
}
