// Transactions that clients hold, in the OpenAPI document: /v1/transaction and the two paths below it.
import { beginFields, endFields } from '../transaction-request.ts';
import { describeRequest, refer, type Schema } from './schemas.ts';

/** What all operations of /v1 have in common. */
export type Shared = {
  readonly parameters: readonly Schema[];
  readonly headers: Schema;
  readonly failures: Schema;
};

/** What requests of these paths are. */
export const transactionSchemas: Schema = {
  BeginRequest: describeRequest(beginFields, []),
  EndRequest: describeRequest(endFields, ['transaction']),
};

/** The paths. */
export function describeTransactions(shared: Shared): Schema {
  const ending = (operationId: string, summary: string, reply: string) => ({
    post: describeOperation(
      { operationId, summary, asked: 'EndRequest', reply, status: 200 },
      shared,
    ),
  });
  const beginning = {
    operationId: 'begin',
    summary: 'Begins a transaction that stays open from request to request.',
    asked: 'BeginRequest',
    reply: 'Begun',
    status: 201,
  };
  return {
    '/v1/transaction': { post: describeOperation(beginning, shared) },
    '/v1/transaction/commit': ending('commit', 'Commits a transaction.', 'Committed'),
    '/v1/transaction/rollback': ending('rollback', 'Rolls a transaction back.', 'RolledBack'),
  };
}

type Operation = {
  readonly operationId: string;
  readonly summary: string;
  readonly asked: string;
  readonly reply: string;
  readonly status: number;
};

function describeOperation(
  { operationId, summary, asked, reply, status }: Operation,
  { parameters, headers, failures }: Shared,
): Schema {
  return {
    operationId,
    summary,
    parameters,
    requestBody: { required: true, content: { 'application/json': { schema: refer(asked) } } },
    responses: {
      [status]: {
        description: 'It is done.',
        headers,
        content: { 'application/json': { schema: refer(reply) } },
      },
      ...failures,
    },
  };
}
