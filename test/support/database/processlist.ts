// The statements that a server runs now, and their connections: its process list, read on a connection that remains open.
import type { RowDataPacket } from 'mysql2';
import { eventually } from '../eventually.ts';
import type { Database } from './mariadb.ts';

/** One thread of the server that belongs to the database of a test. */
export type Thread = {
  readonly id: number;
  readonly sql: string | null;
  /** How long its connection has been idle, in whole seconds; MySQL may count one too many. 0: a statement runs. */
  readonly idleSeconds: number;
  /** How long its statement has run, in the same measure. 0: none runs. */
  readonly runningSeconds: number;
};

/** A view of the process list; the caller must close it. */
export type Processlist = {
  /** The threads of this database that run a statement containing `text`. */
  readonly running: (text: string) => Promise<Thread[]>;
  /** All connections to this database but this one. */
  readonly connections: () => Promise<Thread[]>;
  /** Resolves when the connection has been idle for longer than a second, so that the gateway asks it before it sends a statement. */
  readonly rested: (id: number) => Promise<void>;
  /** Resolves when such a statement runs. */
  readonly started: (text: string, count?: number) => Promise<void>;
  /** Resolves to the ms that passed until no such statement ran any more. */
  readonly ended: (text: string, timeoutMs?: number) => Promise<number>;
  readonly close: () => void;
};

/** Opens the view. */
export async function openProcesslist(database: Database): Promise<Processlist> {
  const connection = await database.connect();
  connection.on('error', () => undefined);
  const list = async (): Promise<Thread[]> => {
    const [rows] = await connection.query<RowDataPacket[]>(
      `select id, info as running, command = 'Sleep' as is_idle, time
        from information_schema.processlist where db = database() and id <> connection_id()`,
    );
    return rows.map((row) => ({
      id: Number(row.id),
      sql: row.running as string | null,
      idleSeconds: row.is_idle ? Number(row.time) : 0,
      runningSeconds: row.is_idle ? 0 : Number(row.time),
    }));
  };
  const running = async (text: string) => (await list()).filter(({ sql }) => sql?.includes(text));
  return {
    running,
    connections: list,
    rested: async (id) => {
      await eventually(`connection ${id} has been idle for longer than a second`, async () =>
        (await list()).some((thread) => thread.id === id && thread.idleSeconds >= 2),
      );
    },
    started: async (text, count = 1) => {
      await eventually(
        `${count} × ${text} is running`,
        async () => (await running(text)).length >= count,
      );
    },
    ended: async (text, timeoutMs = 30_000) => {
      const from = performance.now();
      const gone = async () => (await running(text)).length === 0;
      await eventually(`${text} has ended`, gone, { timeoutMs });
      return performance.now() - from;
    },
    close: () => connection.destroy(),
  };
}
