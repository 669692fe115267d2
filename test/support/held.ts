// A transaction that a client holds by /v1/transaction, as a test uses it.
import assert from 'node:assert/strict';
import type { Ask, Options, Reply } from './ask.ts';

/** One, begun. */
export type HeldByClient = {
  readonly token: string;
  /** POST /v1/query in it. */
  readonly query: (sql: string, more?: object) => Promise<Reply>;
  /** The rows of a query in it. Fails if there are none. */
  readonly rows: (sql: string) => Promise<readonly (readonly unknown[])[]>;
  readonly commit: () => Promise<Reply>;
  readonly rollback: () => Promise<Reply>;
};

/** The reply to a request in a transaction that is over. */
export type Reported = {
  readonly code: string;
  readonly outcome: string;
  readonly errno?: number;
  readonly retryable: boolean;
};

/** Begins one. @param options of every request in it */
export async function beginHeld(
  ask: Pick<Ask, 'post'>,
  wish: object = {},
  options: Options = {},
): Promise<HeldByClient> {
  const begun = await ask.post('/v1/transaction', wish, options);
  assert.equal(begun.status, 201, begun.text);
  return holdBy(ask, begun.json<{ transaction: string }>().transaction, options);
}

/** The same for an existing token. */
export function holdBy(ask: Pick<Ask, 'post'>, token: string, options: Options = {}): HeldByClient {
  const query = (sql: string, more: object = {}) =>
    ask.post('/v1/query', { sql, transaction: token, ...more }, options);
  const end = (verb: string) => () =>
    ask.post(`/v1/transaction/${verb}`, { transaction: token }, options);
  return {
    token,
    query,
    rows: async (sql) => {
      const reply = await query(sql);
      assert.equal(reply.status, 200, reply.text);
      return reply.json<{ rows: readonly (readonly unknown[])[] }>().rows;
    },
    commit: end('commit'),
    rollback: end('rollback'),
  };
}

/** Status, code and outcome of a refusal, in one line. */
export function summarise(reply: Reply): string {
  const { code, outcome } = reply.json<Reported>();
  return `${reply.status} ${code} ${outcome}`;
}
