// Statements that run for as long as a test chooses: they read a table that is locked until the gate is opened.
import type { Database } from './mariadb.ts';

/** A gate that is closed. The caller must open it: everything that waits then continues at once. Opening it again does nothing. */
export type Gate = {
  /** The SQL of a number that is 0, and known once the gate is open. */
  readonly zero: string;
  readonly open: () => Promise<void>;
};

/** Create it before the gateway starts: for a table that it does not know yet, the gateway reads its catalogue first. */
export async function createGate(database: Database, name = 'gate'): Promise<void> {
  await database.query(`create table ${name} (id int primary key)`);
}

/** Closes the gate of this name. */
export async function closeGate(database: Database, name = 'gate'): Promise<Gate> {
  const keeper = await database.connect();
  keeper.on('error', () => undefined);
  await keeper.query(`lock tables ${name} write`);
  let isOpen = false;
  return {
    // A statement that calls SLEEP is never pipelined. In the pipeline it would end at the pipeline's own limit.
    zero: `(select count(*) + sleep(0) from ${name})`,
    open: async () => {
      if (isOpen) return;
      isOpen = true;
      await keeper.query('unlock tables');
      keeper.destroy();
    },
  };
}
