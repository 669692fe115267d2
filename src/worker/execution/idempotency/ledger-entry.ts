// One attempt's row in the table of idempotency keys: the statements that write it, complete it and look it up.
// Must not know sessions, nor when they are sent.
import { randomUUID } from 'node:crypto';
import type { LedgerTable } from '../../../shared/idempotency-table.ts';

/** What a key stands for; both are SHA-256 sums in hexadecimal. */
export type IdempotencyKey = {
  /** Of the section and the key. */
  readonly id: string;
  /** Of the request. */
  readonly request: string;
};

/** A row as it was committed. */
export type KeptRow = {
  readonly request: string;
  readonly attempt: string;
  /** Null: the transaction was committed on its way, by one of the statements. */
  readonly reply: Buffer | null;
};

/** The statements of one attempt. Values stand in hexadecimal, which every sql_mode and character set reads alike. */
export class LedgerEntry {
  /** Tells the row from that of another attempt at the same key. */
  readonly attempt = randomUUID().replaceAll('-', '');
  readonly #table: LedgerTable;
  readonly #key: IdempotencyKey;

  constructor(table: LedgerTable, key: IdempotencyKey) {
    this.#table = table;
    this.#key = key;
  }

  /** Takes the key: fails with 1062 where somebody has committed it, and waits for whoever may. */
  get insertion(): string {
    const { id, request } = this.#key;
    const created = utcTime(Date.now());
    return `INSERT INTO ${this.#table.quoted} (id, request, attempt, created) VALUES (x'${id}', x'${request}', x'${this.attempt}', '${created}')`;
  }

  /** Changes one row; none where the row is not this attempt's, or its transaction was undone on its way. */
  completion(reply: Buffer): string {
    const { id } = this.#key;
    return `UPDATE ${this.#table.quoted} SET reply = x'${reply.toString('hex')}' WHERE id = x'${id}' AND attempt = x'${this.attempt}'`;
  }

  /**
   * Locking, and so of what is committed: a plain SELECT tells of rows that never were (READ UNCOMMITTED) or are no more
   * (REPEATABLE READ).
   */
  get lookUp(): string {
    return `SELECT HEX(request), HEX(attempt), reply FROM ${this.#table.quoted} WHERE id = x'${this.#key.id}' LOCK IN SHARE MODE`;
  }

  /** Of the rows that `lookUp` has brought; null: there is none. */
  parseRow([row]: readonly (readonly (string | null)[])[]): KeptRow | null {
    if (row === undefined) return null;
    const [request, attempt, reply] = row;
    return {
      request: (request ?? '').toLowerCase(),
      attempt: (attempt ?? '').toLowerCase(),
      reply: reply === null || reply === undefined ? null : Buffer.from(reply),
    };
  }
}

/** A time in ms since 1970 as a literal of DATETIME(3), in UTC. */
export function utcTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, -1).replace('T', ' ');
}
