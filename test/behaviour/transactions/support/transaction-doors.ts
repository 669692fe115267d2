// The two doors by which a client holds a transaction, with the same words for the replies: /v1, and the driver of PlanetScale's.
import assert from 'node:assert/strict';
import type { Agent } from 'node:http';
import { Client, DatabaseError } from '@planetscale/database';
import { createAsk, type Options, type Reply } from '../../../support/ask.ts';
import { driverSettings, driverUrl } from '../../../support/driver.ts';
import { type HeldByClient, holdBy, summarise } from '../../../support/held.ts';

/**
 * The reply to a request: `begun`, `done`, `committed`, `rolled back`, `ended` (the driver's ROLLBACK says no more); `cut` if the
 * connection ended without a reply; else status, code and outcome of a refusal.
 */
export type Reported = string;

/** A client of one transaction, which keeps to it whatever the replies say. It rejects only replies that no client may get. */
export type TransactionClient = {
  readonly begin: () => Promise<Reported>;
  /** @param agent the connections for it */
  readonly run: (sql: string, agent?: Agent) => Promise<Reported>;
  readonly commit: (agent?: Agent) => Promise<Reported>;
  readonly rollback: (agent?: Agent) => Promise<Reported>;
};

/** A way in. */
export type Door = {
  readonly name: string;
  readonly open: (gateway: { readonly url: string }) => TransactionClient;
  /** The driver's reply to a rollback for which /v1 replies this. */
  readonly rollbackReported: (reported: Reported) => Reported;
};

export const doors: readonly Door[] = [
  { name: '/v1', open: openV1, rollbackReported: (reported) => reported },
  {
    name: 'driver',
    open: openDriver,
    rollbackReported: (reported) =>
      /^(committed|rolled back)$/.test(reported) ? 'ended' : reported,
  },
];

const headers = { Authorization: `Bearer ${driverSettings.token}` };
/** Tests decide when a request is answered. */
const timeoutMs = 120_000;

function openV1({ url }: { readonly url: string }): TransactionClient {
  const ask = createAsk(url);
  let token = '';
  const held = (agent: Agent | undefined): HeldByClient => {
    const options: Options = agent === undefined ? {} : { agent };
    return holdBy(ask, token, { ...options, headers, timeoutMs });
  };
  const end = (reply: Reply): Reported => {
    if (reply.status !== 200) return summarise(reply);
    const { committed } = reply.json<{ committed?: boolean }>();
    return committed === true ? 'committed' : endOf(reply);
  };
  return {
    begin: () =>
      orCut(async () => {
        const begun = await ask.post('/v1/transaction', {}, { headers, timeoutMs });
        if (begun.status !== 201) return summarise(begun);
        token = begun.json<{ transaction: string }>().transaction;
        return 'begun';
      }),
    run: (sql, agent) =>
      orCut(async () => {
        const reply = await held(agent).query(sql);
        return reply.status === 200 ? 'done' : summarise(reply);
      }),
    commit: (agent) => orCut(async () => end(await held(agent).commit())),
    rollback: (agent) => orCut(async () => end(await held(agent).rollback())),
  };
}

function endOf(reply: Reply): Reported {
  assert.deepEqual(reply.json(), { rolled_back: true });
  return 'rolled back';
}

/** MySQL's numbers of the same, by which adapters distinguish the driver's errors. */
const numbers: Readonly<Record<string, string>> = {
  TRANSACTION_ENDED: '(errno 1317) (sqlstate 70100)',
  CONNECTION_LOST: '(errno 2013) (sqlstate HY000)',
  DEADLINE_RUNNING: '(errno 3024) (sqlstate HY000)',
  DATABASE_UNREACHABLE: '(errno 2003) (sqlstate HY000)',
};

/** The driver's own connection; it keeps its session, like a request in flight when another one learns that the transaction is over. */
function openDriver(gateway: { readonly url: string }): TransactionClient {
  const ask = createAsk(gateway.url);
  let agent: Agent | undefined;
  let session: unknown = null;
  const send = async (url: string, asked: { headers: Record<string, string>; body: string }) => {
    const body = { ...JSON.parse(asked.body), ...(session === null ? {} : { session }) };
    const options: Options = agent === undefined ? {} : { agent };
    const { headers } = asked;
    const reply = await ask.post(new URL(url).pathname, body, { ...options, headers, timeoutMs });
    const { status, text } = reply;
    if (body.query === 'BEGIN' && status === 200)
      session = reply.json<{ session: unknown }>().session;
    return { ok: status === 200, status, statusText: '', text: () => Promise.resolve(text) };
  };
  const connection = new Client({
    url: driverUrl(gateway),
    fetch: (url, init) => send(url, init ?? { headers: {}, body: '{}' }),
  }).connection();
  const execute = (sql: string, reported: Reported, via?: Agent) =>
    orCut(async () => {
      agent = via;
      return await connection.execute(sql).then(() => reported, tellError);
    });
  return {
    begin: () => execute('BEGIN', 'begun'),
    run: (sql, via) => execute(sql, 'done', via),
    commit: (via) => execute('COMMIT', 'committed', via),
    rollback: (via) => execute('ROLLBACK', 'ended', via),
  };
}

function tellError(error: unknown): Reported {
  if (!(error instanceof DatabaseError)) throw error;
  const { code, outcome } = error.body as { code: string; outcome?: string };
  assert.ok(error.message.endsWith(` ${numbers[code]}`), error.message);
  return `${error.status} ${code} ${outcome}`;
}

async function orCut(ask: () => Promise<Reported>): Promise<Reported> {
  try {
    return await ask();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') return 'cut';
    throw error;
  }
}
