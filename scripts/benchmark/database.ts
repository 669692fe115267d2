// The database of the benchmark: a private MariaDB with the benchmark's tables.
import mysql from 'mysql2/promise';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../src/shared/database/idempotency-table.ts';
import { startServerProcess } from '../../test/support/database/server-process.ts';
import { readUsage } from '../support/proc.ts';

/** A running server with the tables. The caller must stop it. */
export type Database = {
  readonly host: string;
  readonly port: number;
  readonly socket: string;
  readonly user: string;
  readonly password: string;
  readonly name: string;
  readonly version: string;
  readonly query: (sql: string) => Promise<readonly Record<string, unknown>[]>;
  /** CPU time that the server has used so far, in µs. */
  readonly cpuUs: () => number;
  readonly stop: () => Promise<void>;
};

const name = 'bench';
/** The table of idempotency keys. */
export const keysTable = 'idempotency_keys';

// Rows of an ordinary shop. The large results have ten columns and 250 bytes a row as JSON. There are enough rows that a statement needs
// more than a handful of pages, and few enough that all of them fit into the buffer pool.
const tables = `
create table item (
  id int unsigned primary key, number int not null, name varchar(60) not null,
  price decimal(10,2) not null, made datetime not null);
insert into item select seq, seq * 7919 % 100003, concat('item ', md5(seq)), seq / 100,
  '2007-11-07' + interval seq minute from seq_1_to_100000;
create table customer (id int unsigned primary key, name varchar(60) not null);
insert into customer select seq, concat('customer ', md5(seq)) from seq_1_to_10000;
create table purchase (
  id int unsigned primary key, customer int unsigned not null, quantity int not null,
  price decimal(10,2) not null, key (customer));
insert into purchase select seq, 1 + seq % 10000, seq % 12, seq / 100 from seq_1_to_100000;
create table bulk (
  id int unsigned primary key, customer int unsigned not null, quantity smallint not null,
  price decimal(10,2) not null, tax decimal(6,4) not null, made datetime not null, shipped date,
  status varchar(12) not null, name varchar(60) not null, note varchar(200) not null);
insert into bulk select seq, 1 + seq % 10000, seq % 100, seq / 100, 0.19,
  '2007-11-07' + interval seq minute, if(seq % 7 = 0, null, '2007-11-09' + interval seq minute),
  elt(1 + seq % 3, 'new', 'paid', 'delivered'), concat('item ', md5(seq)),
  concat(md5(seq + 1), md5(seq + 2), md5(seq + 3), md5(seq + 4)) from seq_1_to_100000;
create table inserted (
  id int unsigned primary key auto_increment, number int not null, name varchar(60) not null,
  price decimal(10,2) not null);
create table ordered (id int unsigned primary key auto_increment, item int unsigned not null, name varchar(60) not null);
create table stock (id int unsigned primary key, n int not null);
insert into stock select seq, 1000000 from seq_1_to_100000;
analyze table item, customer, purchase, bulk, stock`;

/**
 * Starts a server with room for every client of a run, and fills the tables. Takes about two seconds.
 * @param further SQL of more tables
 */
export async function startDatabase(further = ''): Promise<Database> {
  const server = await startServerProcess([
    '--max-connections=700',
    '--innodb-buffer-pool-size=256M',
    // A cell of 16 MiB, and its row around it.
    '--max-allowed-packet=64M',
  ]);
  try {
    const account = {
      host: '127.0.0.1',
      port: server.port,
      user: 'root',
      password: server.password,
    };
    const connection = await mysql.createConnection({ ...account, multipleStatements: true });
    const keys = describeCreation(parseIdempotencyTable(keysTable, name));
    await connection.query(
      `create database ${name} character set utf8mb4; use ${name};${tables};${keys}${further}`,
    );
    const query = async (sql: string) => {
      const [rows] = await connection.query(sql);
      return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
    };
    const [row] = await query('select version() as version');
    return {
      ...account,
      socket: server.socket,
      name,
      version: String(row?.version),
      query,
      cpuUs: () => readUsage(server.pid()).cpuUs,
      stop: async () => {
        connection.destroy();
        await server.remove();
      },
    };
  } catch (error) {
    await server.remove();
    throw error;
  }
}
