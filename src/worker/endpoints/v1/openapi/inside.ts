// /v1/stats, /v1/requests and /v1/statements in the OpenAPI document.
import { outcomes } from '../../../../shared/failure-codes.ts';
import { statementKinds } from '../../../../shared/named/statement.ts';
import { maxListedStatements } from '../../../../shared/observe/statement-sums.ts';
import {
  maxFileFaults,
  maxListedClients,
  maxListedRequests,
  maxRecentErrors,
} from '../../../../shared/observe/stats.ts';
import { closed, refer, type Schema } from './schemas.ts';

const text = { type: 'string' };
const maybeText = { type: ['string', 'null'] };
const flag = { type: 'boolean' };
const count = { type: 'integer', minimum: 0 };
const amount = { type: 'number', minimum: 0 };
const moment = { ...text, pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$' };
const countsByName = { type: 'object', additionalProperties: count };
const maybeAmount = { type: ['number', 'null'], minimum: 0 };
const listOf = (items: Schema): Schema => ({ type: 'array', items });
/** One value a point of the history; null: nothing is known of that moment. */
const line = listOf({ type: ['number', 'null'], minimum: 0 });

const worker = closed({
  slot: count,
  pid: { type: ['integer', 'null'] },
  state: { enum: ['serving', 'starting', 'silent', 'down'] },
  restarts: count,
  runs_other_code: flag,
  ready: flag,
  unready: maybeText,
  requests_in_flight: count,
  client_connections: count,
  cpu_seconds: amount,
  memory_bytes: count,
  event_loop_lag_ms: {
    type: ['number', 'null'],
    minimum: 0,
    description: 'The longest delay within ten seconds.',
  },
});
const backend = closed({
  section: text,
  backend: text,
  role: { ...maybeText, description: 'Null: it is the only server of its section.' },
  reason: { ...maybeText, description: 'Why it has that role.' },
  lag_seconds: maybeAmount,
  max_lag_seconds: { ...maybeAmount, description: 'Null: replicas are not read from.' },
  connections: closed({ busy: count, idle: count, connecting: count, max: count }),
  transactions_held: { ...count, description: 'Connections that transactions of clients hold.' },
  waiting: count,
  connect_errno: {
    type: ['integer', 'null'],
    description:
      "MySQL's number for why a worker cannot connect now; null: all can, or there is no number.",
  },
});
const error = closed({
  at: moment,
  worker: count,
  request_id: text,
  trace_id: maybeText,
  client: maybeText,
  user: maybeText,
  section: maybeText,
  named: { ...maybeText, description: 'The named statement that it called.' },
  tool: { ...maybeText, description: 'The tool that an agent called.' },
  status: count,
  code: { ...maybeText, description: "Null: it is MySQL's own error, by `errno`." },
  errno: { type: ['integer', 'null'] },
  error_name: { ...maybeText, description: "MySQL's name of `errno`, such as ER_DUP_ENTRY." },
  by_data: { ...flag, description: 'The data refused the request, as a duplicate key does.' },
  outcome: { enum: outcomes },
  shape: { ...maybeText, description: 'The statements without literals.' },
  meaning: { ...text, description: 'Of the code, or of `errno`, for people.' },
});
const client = closed({
  client: text,
  share: {
    ...amount,
    maximum: 1,
    description: 'Of the time for which connections were held in the last minute.',
  },
  in_flight: { ...count, description: 'A transaction that is held counts.' },
  waiting: count,
  refused_recently: { ...count, description: 'In the last ten minutes.' },
  requests: count,
  refused: count,
  refused_by: { ...countsByName, description: 'By the code.' },
  held_seconds: amount,
  reply_bytes: count,
  history: {
    oneOf: [
      closed({
        connections: { ...listOf(amount), description: 'Held on average.' },
        refused: listOf(count),
      }),
      { type: 'null' },
    ],
    description: 'The last ten minutes, of the first clients in the list.',
  },
});
const named = closed({
  name: text,
  section: text,
  kind: { enum: statementKinds },
  for: { ...listOf(text), description: 'Clients; `*`: every client with the permission `named`.' },
  calls: { ...count, description: 'Since the start, over all clients.' },
  failed: { ...count, description: 'Those among them that had no result.' },
  total_ms: amount,
});
const fileFault = closed({
  section: text,
  key: { ...text, description: 'The key that names the file.' },
  at: { ...maybeText, description: 'Null: it is a fault of the file as a whole.' },
  problem: text,
});
const history = closed({
  interval_seconds: amount,
  at: { ...listOf(count), description: 'Seconds since 1970, the oldest point first.' },
  outcomes: { type: 'object', additionalProperties: line, description: 'Requests a second.' },
  data_refusals: {
    ...line,
    description: 'Those among them that the data refused, such as duplicate keys.',
  },
  latency_ms: closed({ p50: line, p95: line, p99: line }),
  phases_p95_ms: closed({ waiting: line, first_row: line }),
  connections: closed({ busy: line, max: line }),
  waiting: line,
});

/** Everything that is named here. */
export const insideSchemas: Readonly<Record<string, Schema>> = {
  Stats: closed({
    version: text,
    node: text,
    section: { ...text, description: "The instance's first section." },
    now: moment,
    started_at: moment,
    ready: flag,
    workers: listOf(worker),
    backends: listOf(backend),
    totals: closed({ requests: count, outcomes: countsByName, failures: countsByName }),
    history,
    clients: closed({
      history: closed({
        interval_seconds: amount,
        at: { ...listOf(count), description: 'When each point began; the last is under way.' },
      }),
      omitted: { ...count, description: 'Beyond those that are listed.' },
      clients: {
        ...listOf(client),
        maxItems: maxListedClients,
        description: 'Those that have lately held connections for the longest time first.',
      },
    }),
    errors: { ...listOf(error), maxItems: maxRecentErrors, description: 'The latest first.' },
    file_faults: {
      ...listOf(fileFault),
      maxItems: maxFileFaults,
      description: 'Of files that could not be used when they were last read.',
    },
  }),
  RunningRequest: closed({
    id: { ...text, description: 'Unique in the instance; for DELETE.' },
    request_id: text,
    trace_id: { ...maybeText, description: "That of the request's traceparent." },
    age_ms: count,
    phase: { enum: ['waiting', 'running', 'streaming', 'stalled'] },
    client: {
      ...text,
      description: 'The name of the client; `default` where none are configured.',
    },
    user: { ...maybeText, description: 'The `sub` of its JSON Web Token.' },
    address: { ...maybeText, description: 'Null: it uses a unix socket, or has gone.' },
    worker: count,
    backend: maybeText,
    section: text,
    named: { ...maybeText, description: 'The named statement that it calls.' },
    tool: { ...maybeText, description: 'The tool that an agent calls.' },
    shape: {
      ...maybeText,
      description: 'The statements without literals; null for clients without `sql` and `observe`.',
    },
  }),
  Statement: closed(
    {
      digest: { ...text, description: 'Without literals; `other` for all that are not listed.' },
      section: { ...text, description: 'Missing from `other`.' },
      client: { ...text, description: 'The name of the client; missing from `other`.' },
      name: { ...text, description: 'Of a named statement.' },
      count,
      errors: count,
      errors_by: { ...countsByName, description: "By MySQL's name or by the code." },
      rows: count,
      total_ms: amount,
      share: { ...amount, maximum: 1, description: 'Of the time of all statements.' },
      p50_ms: maybeAmount,
      p95_ms: maybeAmount,
      p99_ms: maybeAmount,
      last_seen: { ...moment, type: ['string', 'null'] },
      example_id: { ...maybeText, description: 'Of one of the latest requests.' },
      history: {
        oneOf: [closed({ count: listOf(count), total_ms: listOf(amount) }), { type: 'null' }],
        description: 'The last ten minutes, of those that have taken most time in them.',
      },
    },
    ['section', 'client', 'name'],
  ),
  Statements: closed({
    history: closed({
      interval_seconds: amount,
      at: { ...listOf(count), description: 'When each point began; the last is under way.' },
    }),
    statements: {
      ...listOf(refer('Statement')),
      maxItems: maxListedStatements + 1,
      description: 'The greatest share first, `other` last.',
    },
    named: {
      ...listOf(named),
      description: 'All named statements by name, whether or not they were called.',
    },
  }),
  RunningRequests: closed({
    requests: { ...listOf(refer('RunningRequest')), description: 'The oldest first.' },
    omitted: { ...count, description: `Beyond the ${maxListedRequests} oldest of each worker.` },
    silent_workers: { ...listOf(count), description: 'Those that did not answer in time.' },
  }),
};

const failed = (description: string): Schema => ({
  description,
  content: { 'application/problem+json': { schema: refer('Problem') } },
});
const refused: Schema = {
  '401': failed('`UNAUTHORIZED`: no valid credentials.'),
  '403': failed(
    '`CROSS_SITE`: a browser sends the request for a page of another site. `FORBIDDEN`: the client lacks the permission that `missing` names.',
  ),
  '421': failed('`UNKNOWN_HOST`: a `Host` that is not served here.'),
  '503': failed(
    '`NO_METRICS`: the supervisor did not answer in time. `AUTH_BUSY`: too many JSON Web Tokens are being verified.',
  ),
};

/** The paths. */
export const insidePaths: Schema = {
  '/v1/stats': { get: describeAnswer('stats', 'The instance in one object.', 'Stats') },
  '/v1/requests': {
    get: describeAnswer(
      'requests',
      'What runs now, over all workers: without the permission `observe` only what the client itself runs.',
      'RunningRequests',
    ),
  },
  '/v1/statements': {
    get: describeAnswer('statements', 'What statements cost, by their digests.', 'Statements'),
  },
  '/v1/requests/{id}': {
    delete: {
      operationId: 'kill',
      summary:
        'Ends one request, or all with this X-Request-ID, whichever worker has them: 504 `KILLED`.',
      parameters: [
        {
          ...{ name: 'id', in: 'path', required: true, schema: text },
          description:
            'An `id` of the list, or the X-Request-ID that the client has sent. To end requests of others needs the permission `kill`.',
        },
      ],
      responses: {
        '200': {
          description: 'It is ended.',
          content: {
            'application/json': { schema: closed({ id: text, killed: { const: true } }) },
          },
        },
        '404': failed('`NOT_FOUND`: there is no such request, or it is over.'),
        ...refused,
      },
    },
  },
};

function describeAnswer(operationId: string, summary: string, schema: string): Schema {
  return {
    operationId,
    summary,
    responses: {
      '200': {
        description: summary,
        content: { 'application/json': { schema: refer(schema) } },
      },
      ...refused,
    },
  };
}
