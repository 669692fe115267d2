// The named statements of a caller in the OpenAPI document: a path for each.
import type { JsonSchema } from '../../../../shared/named/parameter-schema.ts';
import type { NamedStatement } from '../../../../shared/named/statement.ts';
import type { NamedEntry } from '../../named/statements.ts';
import { closed, refer, type Schema } from './schemas.ts';

/** The parts of an operation that all of them have. */
export type CommonParts = {
  readonly parameters: readonly Schema[];
  readonly keyParameter: Schema;
  readonly headers: Schema;
  readonly rowFormats: Schema;
  /** A response for each status with which a call may fail. */
  readonly failed: Readonly<Record<string, Schema>>;
};

const listed: Schema = {
  name: { type: 'string' },
  kind: { enum: ['one', 'many', 'exec', 'batch'] },
  description: { type: 'string' },
  read_only: { type: 'boolean', description: 'It applies nothing.' },
  key_required: { type: 'boolean', description: 'A call needs an Idempotency-Key.' },
  parameters: { type: 'object', description: 'The JSON Schema of `params`.' },
};

/** The paths of `/v1/named`. */
export function describeNamed(
  entries: readonly NamedEntry[],
  common: CommonParts,
): Readonly<Record<string, Schema>> {
  const paths = entries.map((entry) => [
    `/v1/named/${entry.statement.name}`,
    {
      ...(entry.isForGet && { get: describeGet(entry, common) }),
      post: describePost(entry, common),
    },
  ]);
  return { '/v1/named': { get: describeList(common) }, ...Object.fromEntries(paths) };
}

function describeList({ headers }: CommonParts): Schema {
  return {
    operationId: 'listNamed',
    summary: 'Lists the named statements that the caller may call.',
    responses: {
      200: {
        description: 'They, by name.',
        headers,
        content: {
          'application/json': {
            schema: closed({ statements: { type: 'array', items: closed(listed) } }),
          },
        },
      },
    },
  };
}

function describeGet(
  entry: NamedEntry,
  { parameters, headers, rowFormats, failed }: CommonParts,
): Schema {
  const { statement } = entry;
  const { properties = {}, required = [] } = entry.parameters as {
    readonly properties?: Readonly<Record<string, JsonSchema>>;
    readonly required?: readonly string[];
  };
  const query = Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }));
  return {
    operationId: `get_${statement.name}`,
    ...describeText(statement),
    parameters: [...query, ...parameters],
    responses: {
      200: {
        description: 'Its rows.',
        headers,
        content: { ...json(schemaOfReply(entry)), ...rowFormats },
      },
      ...withOwnStatuses(statement, failed),
    },
  };
}

function describePost(entry: NamedEntry, common: CommonParts): Schema {
  const { statement, parameters } = entry;
  const hasRows = statement.kind === 'one' || statement.kind === 'many';
  const key = { ...common.keyParameter, required: statement.isKeyRequired };
  const request = {
    type: 'object',
    properties: {
      params: parameters,
      timeout_ms: { type: 'number', exclusiveMinimum: 0 },
      read_only: { type: 'boolean' },
      rows: {
        enum: ['object', 'array'],
        default: 'object',
        description: 'How a row looks. An `array` comes with its columns.',
      },
      section: { type: 'string' },
      transaction: { type: 'string' },
    },
    ...(parameters.required !== undefined && { required: ['params'] }),
    additionalProperties: false,
  };
  return {
    operationId: statement.name,
    ...describeText(statement),
    parameters: [...(statement.isRead ? [] : [key]), ...common.parameters],
    requestBody: { required: true, content: { 'application/json': { schema: request } } },
    responses: {
      200: {
        description: 'What it has answered.',
        headers: common.headers,
        content: { ...json(schemaOfPosted(entry)), ...(hasRows && common.rowFormats) },
      },
      ...withOwnStatuses(statement, common.failed),
    },
  };
}

function describeText({ name, description }: NamedStatement): Schema {
  const [summary = ''] = description.split('\n');
  return { summary: summary === '' ? name : summary, ...(description !== '' && { description }) };
}

function json(schema: Schema): Schema {
  return { 'application/json': { schema } };
}

const anyArray: Schema = { type: 'array' };

/** A POST may ask for rows as arrays. A single one comes with its columns then. */
function schemaOfPosted(entry: NamedEntry): Schema {
  const about = { request_id: { type: 'string' }, section: { type: 'string' } };
  const columns = { type: 'array', items: refer('Column') };
  if (entry.statement.kind !== 'one') return schemaOfReply(entry, [anyArray]);
  return { anyOf: [schemaOfReply(entry), closed({ columns, row: anyArray, ...about })] };
}

/** Rows have the columns that the server has described; before that, any. @param others what a row may be beside an object */
function schemaOfReply(
  { statement: { kind }, row }: NamedEntry,
  others: readonly Schema[] = [],
): Schema {
  const object = row ?? { type: 'object' };
  const rows = {
    type: 'array',
    items: others.length === 0 ? object : { anyOf: [object, ...others] },
  };
  switch (kind) {
    case 'one':
      return object;
    case 'many':
      return { oneOf: [withRows('Rows', rows), refer('Several')] };
    case 'exec':
      return { oneOf: [refer('Changes'), refer('Rows'), refer('Several')] };
    case 'batch':
      return {
        type: 'object',
        properties: { committed: { const: true }, rows, steps: { type: 'object' } },
        required: ['committed', 'steps'],
      };
    default:
      return kind satisfies never;
  }
}

function withRows(name: string, rows: Schema): Schema {
  return { allOf: [refer(name), { type: 'object', properties: { rows } }] };
}

/** The statuses of the statement's own codes are among those of the gateway's, or beside them. */
function withOwnStatuses(
  { errors, refusals }: NamedStatement,
  failed: CommonParts['failed'],
): CommonParts['failed'] {
  const own = [...errors, ...refusals];
  if (own.length === 0) return failed;
  const responses: Record<string, Schema> = { ...failed };
  for (const { status, code, text } of own) {
    const known = responses[status] ?? {
      description: '',
      content: { 'application/problem+json': { schema: refer('Problem') } },
    };
    const description = `\`${code}\`: ${text} ${known.description}`.trim();
    responses[status] = { ...known, description };
  }
  return responses;
}
