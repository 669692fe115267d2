// Requests and replies of /v1 as JSON Schema (2020-12, the dialect of OpenAPI 3.1).
import { permissions } from '../../../../shared/clients/client.ts';
import { outcomeMeanings } from '../../../../shared/failure-codes.ts';
import { isolationLevels } from '../../../../shared/sql/transactions.ts';
import { maxListedWarnings } from '../../../execution/warnings.ts';

/** A schema, or a part of the document that holds some. */
export type Schema = { readonly [keyword: string]: unknown };

/** A place in `components`. */
export const refer = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

const text = { type: 'string' };
const flag = { type: 'boolean' };
const count = { type: 'integer', minimum: 0 };

/** A request's field: what it may be beside null, which is as good as absent. */
const fields: Readonly<Record<string, Schema>> = {
  sql: { ...text, minLength: 1, description: 'One statement.' },
  named: { ...text, description: 'The name of a named statement, in place of `sql`.' },
  params: {
    description: 'Values for `?` in an array, for `:name` in an object. An array is for `IN (?)`.',
    anyOf: [
      { type: 'array', items: refer('Parameter') },
      { type: 'object', additionalProperties: refer('Parameter') },
    ],
  },
  timeout_ms: {
    type: 'number',
    exclusiveMinimum: 0,
    description: 'The deadline, in ms; at most `statement_timeout`, which it is without this.',
  },
  read_only: { ...flag, description: 'Only a statement that reads, in a READ ONLY transaction.' },
  max_rows: { ...count, description: 'No more rows than that; 0 is no limit.' },
  max_affected: {
    ...count,
    description: 'A write that touches more rows is undone: 409 `TOO_MANY_ROWS`.',
  },
  dry_run: { ...flag, description: 'The statement runs, and all that it did is undone.' },
  show_warnings: {
    ...flag,
    description:
      'Each result lists up to ten of its warnings, in `warning_list`; not as CSV. In a batch, the result before a statement with ROW_COUNT() has no list.',
  },
  statements: {
    type: 'array',
    minItems: 1,
    items: refer('BatchStatement'),
    description: 'What is run, in this order.',
  },
  expect: {
    description: 'What the statement must have done, or all is undone.',
    oneOf: [closed({ affected_rows: refer('Expected') }), closed({ row_count: refer('Expected') })],
  },
  atomic: { ...flag, default: true, description: '`false`: without a transaction.' },
  isolation: {
    enum: isolationLevels,
    description: "The transaction's isolation level; the session's without this.",
  },
  retry: {
    ...count,
    default: 3,
    description: 'How often all is run again after a deadlock, a lock wait or a lost snapshot.',
  },
  rows: { enum: ['array', 'object'], default: 'array', description: 'How a row looks.' },
  numbers: {
    enum: ['exact', 'raw'],
    default: 'exact',
    description: '`exact`: BIGINT and DECIMAL as strings. `raw`: all digits as JSON numbers.',
  },
  json: {
    enum: ['value', 'string'],
    default: 'value',
    description: 'JSON columns as values or as their text.',
  },
  section: { ...text, description: 'The section that is meant; without this the first.' },
  transaction: {
    ...text,
    description: 'The token of the transaction that is meant, as /v1/transaction gave it.',
  },
};

/** The schema of a request of which these fields are taken. Throws where one of them is not described. */
export function describeRequest(names: readonly string[], required: readonly string[]): Schema {
  const described = names.map((name) => {
    const field = fields[name];
    if (field === undefined) throw new Error(`the field ${name} is not described`);
    return [name, required.includes(name) ? field : { anyOf: [field, { type: 'null' }] }];
  });
  return {
    type: 'object',
    properties: Object.fromEntries(described),
    required,
    additionalProperties: false,
  };
}

/** An object with these properties and no others. */
export function closed(properties: Schema, optional: readonly string[] = []): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, required, additionalProperties: false };
}

const about = {
  request_id: { ...text, description: 'As in X-Request-ID, and in the log.' },
  section: text,
};
const kept = {
  rows_omitted: {
    const: true,
    description: 'Of a repetition: the reply was too long to be kept with its rows.',
  },
};
const undone = {
  rolled_back: { const: true, description: 'Of a `dry_run`.' },
};
const listed = {
  warning_list: {
    type: 'array',
    items: refer('Warning'),
    maxItems: maxListedWarnings,
    description: 'Of a request with `show_warnings`.',
  },
};
const rowsOf = {
  columns: { type: 'array', items: refer('Column') },
  rows: { type: 'array', items: { type: ['array', 'object'] } },
  row_count: count,
  truncated: { ...flag, description: 'Whether rows were left out, by `max_rows`.' },
  warnings: { ...count, description: 'How many warnings the server has for the statement.' },
};
const changesOf = {
  affected_rows: count,
  insert_id: {
    type: ['string', 'null'],
    pattern: '^[0-9]+$',
    description: 'The first AUTO_INCREMENT value that was made.',
  },
  warnings: count,
};

const severalOf = {
  results: { type: 'array', items: { oneOf: [closed(rowsOf), closed(changesOf)] } },
};

/** Everything that is named. */
export const schemas: Readonly<Record<string, Schema>> = {
  Begun: closed({
    transaction: { ...text, description: 'Its token: for its statements, and for its end.' },
    idle_timeout_ms: { ...count, description: 'Idle for so long, it is rolled back.' },
  }),
  Committed: closed({ committed: { const: true } }),
  RolledBack: closed(
    {
      rolled_back: { ...flag, description: 'False: not all was undone.' },
      committed: { const: true, description: 'It had been committed before.' },
      outcome: {
        enum: ['partial', 'unknown'],
        description: 'Tables without transactions were changed, or a procedure had ended it.',
      },
    },
    ['committed', 'outcome'],
  ),
  Parameter: { anyOf: [refer('Value'), { type: 'array', items: refer('Value') }] },
  Value: {
    anyOf: [
      { type: ['string', 'number', 'boolean', 'null'] },
      closed({ $binary: { ...text, contentEncoding: 'base64' } }),
    ],
  },
  Column: closed(
    {
      name: text,
      type: { ...text, description: "SQL's word: BIGINT, DECIMAL, VARCHAR, DATETIME …" },
      nullable: flag,
      unsigned: flag,
      precision: count,
      scale: count,
      encoding: { const: 'base64' },
    },
    ['unsigned', 'precision', 'scale', 'encoding'],
  ),
  Expected: {
    anyOf: [count, closed({ min: count, max: count }, ['min', 'max'])],
    description: 'A number, or bounds that are inclusive.',
  },
  Warning: closed({
    level: { enum: ['Note', 'Warning', 'Error'] },
    code: { ...text, description: "MySQL's name of the warning." },
    errno: { type: 'integer' },
    message: text,
  }),
  Rows: closed({ ...rowsOf, ...listed, ...undone, ...about, ...kept }, [
    'warning_list',
    'rolled_back',
    'rows_omitted',
  ]),
  Changes: closed({ ...changesOf, ...listed, ...undone, ...about }, [
    'warning_list',
    'rolled_back',
  ]),
  Batch: closed(
    {
      committed: { const: true },
      retries: count,
      results: {
        type: 'array',
        items: {
          oneOf: [
            closed({ ...rowsOf, ...listed }, ['warning_list']),
            closed({ ...changesOf, ...listed }, ['warning_list']),
            closed({ ...severalOf, ...listed }, ['warning_list']),
          ],
        },
      },
      ...about,
      ...kept,
    },
    ['rows_omitted'],
  ),
  Several: {
    ...closed(
      {
        ...severalOf,
        ...listed,
        ...about,
        ...kept,
      },
      ['warning_list', 'rows_omitted'],
    ),
    description: 'The results of a CALL.',
  },
  Problem: {
    ...closed(
      {
        type: { const: 'about:blank' },
        title: text,
        status: { type: 'integer' },
        detail: { ...text, description: 'For people.' },
        hint: { ...text, description: "What the gateway adds to MySQL's message, for people." },
        code: { ...text, description: "MySQL's name of the error, or a code of the gateway's." },
        errno: { type: 'integer' },
        sqlstate: { ...text, pattern: '^[0-9A-Z]{5}$' },
        missing: { enum: permissions, description: 'The permission that the client lacks.' },
        parameter: { ...text, description: 'The parameter of a named statement that was refused.' },
        retryable: {
          ...flag,
          description: 'Whether the same request may be sent again without harm, and may succeed.',
        },
        outcome: refer('Outcome'),
        request_id: text,
        statement: { ...count, description: 'Which of several statements, from 0.' },
        offset: { ...count, description: 'Where in the statement, in UTF-16 units.' },
      },
      ['hint', 'errno', 'sqlstate', 'missing', 'parameter', 'statement', 'offset'],
    ),
    description: 'RFC 9457.',
  },
  Refusal: {
    ...closed({ ERROR: text, CODE: text, OUTCOME: { const: 'not_executed' } }),
    description: 'Of a request that was refused before its path was read.',
  },
  Outcome: {
    enum: Object.keys(outcomeMeanings),
    description: Object.entries(outcomeMeanings)
      .map(([word, meaning]) => `\`${word}\`: ${meaning}.`)
      .join(' '),
  },
};
