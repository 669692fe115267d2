// A peer that can be written in an afternoon: fastify, mysql2's pool, JSON.stringify, in the gateway's wire format. `tuned` adds settings
// found by measuring. Arguments: plain or tuned, workers, connections per worker, then host, port, user, password, database.
import cluster from 'node:cluster';
import fastify from 'fastify';
import type { FieldPacket, ResultSetHeader } from 'mysql2';
import mysql from 'mysql2/promise';
import { serveCrew } from './crew.ts';

const [
  style = 'plain',
  workers = '2',
  pool = '10',
  host = '127.0.0.1',
  port = '3306',
  user = 'root',
  password = '',
  database = '',
] = process.argv.slice(2);

// mysql2's table also maps numbers to names, which its declaration does not say.
const typeNames = mysql.Types as unknown as Readonly<Record<number, string>>;

function typeName(field: FieldPacket): string {
  return `MYSQL_TYPE_${typeNames[field.columnType ?? 253] ?? 'STRING'}`;
}

/** The statement in the query string: JSON after the first question mark, `+` for a space. */
function readStatement(url: string): string {
  const text = decodeURIComponent(url.slice(url.indexOf('?') + 1).replaceAll('+', ' '));
  const { SQL } = JSON.parse(text) as { SQL: string };
  return SQL;
}

/** Further options of the pool: mysql2's defaults, or no Date objects and no rows as objects. */
const tuning = style === 'tuned' ? { dateStrings: true, rowsAsArray: true } : {};

/** Rows in the wire format. Of rows as objects, the values in the order of the columns. */
const listRows: (rows: object[]) => unknown[] =
  style === 'tuned' ? (rows) => rows : (rows) => rows.map((row) => Object.values(row));

async function serve(): Promise<void> {
  const connections = mysql.createPool({
    host,
    port: Number(port),
    user,
    password,
    database,
    connectionLimit: Number(pool),
    ...tuning,
  });
  const app = fastify();
  app.get('/db', async (request) => {
    const [rows, fields] = await connections.query(readStatement(request.raw.url ?? ''));
    if (!Array.isArray(rows)) {
      const { affectedRows, insertId } = rows;
      return {
        RESULT: { SUCCESS: true, AFFECTED_ROWS: affectedRows, INSERT_ID: insertId },
        SERVER: database,
      };
    }
    const header = fields.map((field) => field.name);
    return {
      RESULT: { HEADER: header, TYPES: fields.map(typeName), ROWS: listRows(rows) },
      SERVER: database,
    };
  });
  app.post('/v1/batch', async (request) => {
    const { statements } = request.body as { statements: { sql: string; params: unknown[] }[] };
    const connection = await connections.getConnection();
    try {
      await connection.beginTransaction();
      const results: { affected_rows: number; insert_id: number }[] = [];
      for (const { sql, params } of statements) {
        const [{ affectedRows, insertId }] = await connection.query<ResultSetHeader>(sql, params);
        results.push({ affected_rows: affectedRows, insert_id: insertId });
      }
      await connection.commit();
      return { committed: true, results };
    } catch (error) {
      await connection.rollback();
      throw error;
    } finally {
      connection.release();
    }
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
}

if (cluster.isPrimary) serveCrew(Number(workers));
else await serve();
