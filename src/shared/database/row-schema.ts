// The rows of a named statement as a JSON Schema (2020-12), for OpenAPI and for agents. Rows are objects, as /v1 writes them by default.
import type { JsonSchema } from '../named/parameter-schema.ts';
import type { NamedColumn } from './named-columns.ts';

/** The schema of one row. Null columns: they are not known, and every object is a row. */
export function schemaOfRow(columns: readonly NamedColumn[] | null): JsonSchema {
  if (columns === null) return { type: 'object' };
  const fixed = columns.filter(({ nameVaries }) => nameVaries !== true);
  return {
    type: 'object',
    properties: Object.fromEntries(fixed.map((column) => [column.name, schemaOfColumn(column)])),
    required: fixed.map(({ name }) => name),
    additionalProperties: fixed.length < columns.length,
  };
}

/** By the words of `/v1`. Other types are texts. */
const schemas: ReadonlyMap<string, JsonSchema> = new Map(
  Object.entries({
    TINYINT: { type: 'integer' },
    SMALLINT: { type: 'integer' },
    MEDIUMINT: { type: 'integer' },
    INT: { type: 'integer' },
    YEAR: { type: 'integer' },
    FLOAT: { type: 'number' },
    DOUBLE: { type: 'number' },
    // With all their digits, which a JavaScript number may not hold.
    BIGINT: { type: 'string', pattern: '^-?\\d+$' },
    DECIMAL: { type: 'string', pattern: '^-?\\d+(\\.\\d+)?$' },
    // MySQL's zero dates have no format of JSON Schema.
    DATE: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\d$' },
    // A value, of any type.
    JSON: {},
    NULL: { type: 'null' },
    UNKNOWN: {},
  }),
);

function schemaOfColumn({ type, nullable, encoding }: NamedColumn): JsonSchema {
  if (type === null) return {};
  if (encoding === 'base64') return orNull({ type: 'string', contentEncoding: 'base64' }, nullable);
  return orNull(schemas.get(type) ?? { type: 'string' }, nullable);
}

function orNull(schema: JsonSchema, nullable: boolean): JsonSchema {
  const { type } = schema;
  return nullable && typeof type === 'string' && type !== 'null'
    ? { ...schema, type: [type, 'null'] }
    : schema;
}
