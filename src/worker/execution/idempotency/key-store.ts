// Idempotency keys in one worker: whether the table can be used, a lock for each key, and the rows of an attempt.
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import {
  findTableFaults,
  type IdempotencyTable,
  writeEngineProof,
} from '../../../shared/database/idempotency-table.ts';
import { fetchRows, RefusedError } from '../../../shared/mysql/commands.ts';
import { isSameServer, type LostSession } from '../../../shared/mysql/identity.ts';
import type { Log } from '../../../shared/process/log.ts';
import type { Session } from '../../servers/pool/session.ts';

/** An idempotency key and the identity of its request; both are SHA-256 sums in hexadecimal. */
export type IdempotencyKey = {
  /** The sum of the section and the key. */
  readonly id: string;
  /** The sum of the request. */
  readonly request: string;
};

/** A row as it was committed. */
export type KeptRow = {
  readonly request: string;
  readonly attempt: string;
  /** Null: the transaction was committed on its way, by one of the statements. */
  readonly reply: Buffer | null;
};

/** A table that was found good is not fully checked again for this time, unless the server refuses to use it. */
const believedMs = 60_000;
/** The log reports faults once in this time. */
const reportMs = 10_000;

/** A worker's use of the idempotency table. */
export class KeyStore {
  readonly table: IdempotencyTable;
  readonly locks = new KeyLocks();
  /**
   * Fails unless the table has transactions. Part of each attempt, before anything else: the server does not report that a key is written
   * outside of the transaction.
   */
  readonly engineProof: string;
  readonly #log: Log;
  #goodUntil = Number.NEGATIVE_INFINITY;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(table: IdempotencyTable, log: Log) {
    this.table = table;
    this.engineProof = writeEngineProof(table);
    this.#log = log;
  }

  /** Whether the table was found good so recently that only its engine is checked again. */
  get isBelieved(): boolean {
    return performance.now() < this.#goodUntil;
  }

  /** Whether the table is what it must be; asked on a session outside of any transaction. Rejects when the connection is lost. */
  async isUsable({ connection }: Session): Promise<boolean> {
    const now = performance.now();
    this.#goodUntil = Number.NEGATIVE_INFINITY;
    const faults = await findTableFaults(connection, this.table);
    if (faults.length === 0) this.#goodUntil = now + believedMs;
    else this.#report(faults.join('; '));
    return faults.length === 0;
  }

  /** The server refused to write a key because of the table or its grants. */
  refused(errno: number): void {
    this.#goodUntil = Number.NEGATIVE_INFINITY;
    this.#report(`the server refuses to write to it, errno ${errno}`);
  }

  #report(reason: string): void {
    const now = performance.now();
    if (now - this.#reportedAt < reportMs) return;
    this.#reportedAt = now;
    this.#log.error('idempotency_table cannot be used', { reason });
  }
}

/** The owner of an attempt. */
export interface KeyOwner {
  /** How long, in ms, an attempt waits for an answer to COMMIT. After that the key is looked up. */
  readonly commitTimeoutMs: number;
  /** Whether it is unknown what became of an attempt before. */
  readonly isRecovering: boolean;
}

/** One attempt at a batch with a key. Values stand in hexadecimal, which every sql_mode and character set reads alike. */
export class KeyAttempt {
  /** Distinguishes its row from that of another attempt at the same key. */
  readonly id = randomUUID().replaceAll('-', '');
  readonly store: KeyStore;
  readonly owner: KeyOwner;
  readonly #key: IdempotencyKey;
  /** The session that an attempt before has lost; null: none has. */
  readonly #predecessor: LostSession | null;

  constructor(
    store: KeyStore,
    key: IdempotencyKey,
    predecessor: LostSession | null,
    owner: KeyOwner,
  ) {
    this.store = store;
    this.owner = owner;
    this.#key = key;
    this.#predecessor = predecessor;
  }

  /** Whether the session of an attempt before must be ended first. */
  get hasPredecessor(): boolean {
    return this.#predecessor !== null;
  }

  get engineProof(): string {
    return this.store.engineProof;
  }

  /** Takes the key: fails with 1062 if the key is committed already, and waits while another transaction has it. */
  get insertion(): string {
    const { id, request } = this.#key;
    const created = utcTime(Date.now());
    return `INSERT INTO ${this.store.table.quoted} (id, request, attempt, created) VALUES (x'${id}', x'${request}', x'${this.id}', '${created}')`;
  }

  /** Changes one row; none if the row belongs to another attempt, or its transaction was undone on its way. */
  completion(reply: Buffer): string {
    const { id } = this.#key;
    return `UPDATE ${this.store.table.quoted} SET reply = x'${reply.toString('hex')}' WHERE id = x'${id}' AND attempt = x'${this.id}'`;
  }

  /**
   * It locks, and so reads what is committed: a plain SELECT reads rows that were never committed (READ UNCOMMITTED) or no longer exist
   * (REPEATABLE READ).
   */
  get lookUp(): string {
    return `SELECT HEX(request), HEX(attempt), reply FROM ${this.store.table.quoted} WHERE id = x'${this.#key.id}' LOCK IN SHARE MODE`;
  }

  /** Parses the rows of `lookUp`; null: there is none. */
  parseRow([row]: readonly (readonly (string | null)[])[]): KeptRow | null {
    if (row === undefined) return null;
    const [request, attempt, reply] = row;
    return {
      request: (request ?? '').toLowerCase(),
      attempt: (attempt ?? '').toLowerCase(),
      reply: reply === null || reply === undefined ? null : Buffer.from(reply),
    };
  }

  /**
   * Ends the session of the attempt before: its transaction would have the key until the server notices that the connection is gone.
   * A server gives each connection id only once until it restarts. Rejects when this session's connection is lost.
   */
  async endPredecessor({ connection, identity }: Session): Promise<void> {
    const lost = this.#predecessor;
    if (lost === null || !isSameServer(lost.identity, identity)) return;
    try {
      await fetchRows(connection, `KILL ${lost.threadId}`);
    } catch (error) {
      // It has ended by itself.
      if (!(error instanceof RefusedError)) throw error;
    }
  }
}

/** A time in ms since 1970 as a literal of DATETIME(3), in UTC. */
export function utcTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, -1).replace('T', ' ');
}

/** The lock of a key, or a place in the line for it. Its owner must release it; twice does nothing. */
export type KeyLock = {
  /** It was free, and need not be waited for. */
  readonly wasFree: boolean;
  readonly release: () => void;
};

/**
 * A worker runs requests with the same key one at a time: of several that wait in the server for one that rolls back, all except one
 * are ended with a deadlock.
 */
export class KeyLocks {
  readonly #lines = new Map<string, (() => void)[]>();
  /** The lines whose first request is just being begun. */
  readonly #beginning = new Set<(() => void)[]>();

  /** @param begin called when all requests that came before have released the lock; not called if it is free */
  acquire(id: string, begin: () => void): KeyLock {
    const line = this.#lines.get(id);
    if (line === undefined) this.#lines.set(id, [begin]);
    else line.push(begin);
    let isIn = true;
    const release = () => {
      if (isIn) this.#leave(id, begin);
      isIn = false;
    };
    return { wasFree: line === undefined, release };
  }

  #leave(id: string, begin: () => void): void {
    const line = this.#lines.get(id) ?? [];
    const at = line.indexOf(begin);
    line.splice(at, 1);
    if (line.length === 0) this.#lines.delete(id);
    else if (at === 0 && !this.#beginning.has(line)) this.#beginFirst(line);
  }

  /** A request that is rejected at once releases the lock while it begins. The loop begins the next one: recursion would exhaust the stack. */
  #beginFirst(line: (() => void)[]): void {
    this.#beginning.add(line);
    try {
      for (let begun: (() => void) | undefined; line[0] !== begun; ) {
        begun = line[0];
        begun?.();
      }
    } finally {
      this.#beginning.delete(line);
    }
  }
}
