// /v1/tables in the OpenAPI document.
import { closed, type Schema } from './schemas.ts';

const text = { type: 'string' };
const flag = { type: 'boolean' };
const rows = {
  columns: { type: 'array', items: text },
  rows: { type: 'array', items: { type: 'array' } },
};
const grid = closed(rows);
const list: Schema = {
  ...closed({
    ...rows,
    row_count: { type: 'integer' },
    total: { type: 'integer' },
    truncated: flag,
    sections: { type: 'array', items: text },
  }),
  description:
    'Each row has the name of a table, and `table` or `view`. `sections` are those that the client may use.',
};
const table = closed(
  {
    table: text,
    kind: { enum: ['table', 'view'] },
    engine: text,
    comment: text,
    estimated_rows: { type: ['integer', 'null'] },
    columns: grid,
    truncated: flag,
    primary_key: { type: ['array', 'null'], items: text },
    indexes: grid,
    foreign_keys: grid,
    referenced_by: grid,
  },
  ['engine'],
);
const section = query('section', 'The first one unless it is given.');

function query(name: string, description: string): Schema {
  return { name, in: 'query', schema: text, description };
}

/** The paths. @param failed a response for each status with which a request may fail */
export function describeTablePaths(headers: Schema, failed: Schema): Schema {
  const get = (operationId: string, summary: string, parameters: Schema[], schema: Schema) => ({
    get: {
      operationId,
      summary,
      parameters: [...parameters, section],
      responses: {
        200: { description: summary, headers, content: { 'application/json': { schema } } },
        ...failed,
      },
    },
  });
  const name = { name: 'table', in: 'path', required: true, schema: text };
  const filter = query('filter', 'A part of the names, in any case.');
  return {
    '/v1/tables': get('tables', 'The tables and views of a section.', [filter], list),
    '/v1/tables/{table}': get('table', 'What the server knows of one table.', [name], table),
  };
}
