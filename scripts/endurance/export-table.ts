// The table for exports. The number of a row decides its content, for any number.
import type { Database } from '../../test/support/database/mariadb.ts';
import type { Expected } from './export-reader.ts';

/** The statement for the first rows, in the order of their numbers. */
export function exportSql(rows: number): string {
  return `select n, id, total, made, said, raw, hole from export where n < ${rows} order by n`;
}

/** The beginning of an export's statement, to find it in the server's process list. */
export const exportPattern = 'select n, id, total,%';

/** Creates the table `export` with this many rows of about 150 bytes, with every character that a format must escape. */
export async function createExport(database: Database, rows: number): Promise<void> {
  await database.query(`
    create table export (n int unsigned primary key, id bigint unsigned not null, total decimal(20,2) not null,
      made datetime not null, said varchar(80) not null, raw varbinary(4) not null, hole varchar(5));
    insert into export select seq, 18446744073709551615 - seq, seq / 100, '2007-11-07' + interval seq second,
      concat('row ', seq, ' said "é, 😀",\\r\\nand ''', seq % 10, '\\\\'''),
      unhex(lpad(hex(seq), 8, '0')), elt(1 + seq % 3, null, '', '\\t') from seq_0_to_${rows - 1}`);
}

const largest = 18_446_744_073_709_551_615n;
const firstMs = Date.UTC(2007, 10, 7);
const holes = [null, '', '\t'];

/** The rows that a reader must find. */
export const expectedExport: Expected = {
  columns: ['n', 'id', 'total', 'made', 'said', 'raw', 'hole'],
  row: (n) => [
    String(n),
    String(largest - BigInt(n)),
    `${Math.floor(n / 100)}.${String(n % 100).padStart(2, '0')}`,
    new Date(firstMs + n * 1000).toISOString().slice(0, 19).replace('T', ' '),
    `row ${n} said "é, 😀",\r\nand '${n % 10}\\'`,
    Buffer.from([n >>> 24, n >>> 16, n >>> 8, n]).toString('base64'),
    holes[n % 3] as string | null,
  ],
};
