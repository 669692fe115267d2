// The tool `query`: one statement that reads, by whatever SQL its client writes. Two layers keep it from more: the text must be recognised as
// a read, and it runs in a READ ONLY transaction, with what it calls looked up on the server.
import type { Pieces } from '../../../shared/pieces.ts';
import type { Parameters } from '../../../shared/sql/bind.ts';
import { findRefusedCall } from '../../../shared/sql/refused-calls.ts';
import { chooseToolJson } from '../../encode/formats/tool-json.ts';
import type { ResultHeads } from '../../encode/result-rows.ts';
import { refuse } from '../../failure/failure.ts';
import { type FieldCheck, type Fields, isDuration, isParameters, isText } from '../fields.ts';
import type { HandedDecision } from '../handed-over.ts';
import { createHint } from '../placeholder-hint.ts';
import { lowerLimit, type SqlSection, type UsableSections } from '../sections.ts';
import { decideStatement, type StatementWish } from '../statement.ts';
import { ToolArguments } from './arguments.ts';
import { readOnlyAnnotations, type Tool, type ToolCall } from './tools.ts';

/** Limits of a result, unless the call asks for others. */
export const queryDefaults = { maxRows: 200, maxBytes: 32 * 1024, timeoutMs: 10_000 } as const;
/** The most that a call may ask for: a result is held back as a whole, and a model reads all of it. */
export const queryLimits = { maxRows: 10_000, maxBytes: 1024 * 1024 } as const;

const description = `Runs one SQL statement that reads, and returns its rows as JSON: {"columns":[…],"rows":[[…],…],"row_count":n,"truncated":false}.
SELECT, WITH, VALUES, TABLE, SHOW, DESCRIBE and EXPLAIN are allowed; anything that may write, lock, or change the session is refused.
Put values into params (? with an array, :name with an object), not into the SQL.
Results end after ${queryDefaults.maxRows} rows or ${queryDefaults.maxBytes / 1024} KiB ("truncated":true): narrow the query, aggregate, or page by key. Long cells are shortened (use SUBSTRING), bytes appear as their size (use HEX). BIGINT and DECIMAL are strings, with all digits.
The database ends the statement after ${queryDefaults.timeoutMs / 1000} s.`;

/** Creates the tool of one client. @param heads those of all clients */
export function createQueryTool(sections: UsableSections<SqlSection>, heads: ResultHeads): Tool {
  const args = new ToolArguments(sections, {
    sql: {
      schema: { type: 'string', minLength: 1, description: 'One statement, without a semicolon.' },
      check: isText,
    },
    params: {
      schema: {
        type: ['array', 'object'],
        description: 'Values: an array for ?, an object for :name.',
      },
      check: isParameters,
    },
    max_rows: {
      schema: { type: 'integer', minimum: 1, maximum: queryLimits.maxRows },
      check: isWithin(1, queryLimits.maxRows),
    },
    max_bytes: {
      schema: { type: 'integer', minimum: 1024, maximum: queryLimits.maxBytes },
      check: isWithin(1024, queryLimits.maxBytes),
    },
    timeout_ms: {
      schema: { type: 'number', exclusiveMinimum: 0, description: 'A longer or shorter time.' },
      check: isDuration,
    },
  });
  return {
    definition: {
      name: 'query',
      title: 'Read with SQL',
      description,
      inputSchema: {
        type: 'object',
        properties: args.properties,
        required: ['sql'],
        additionalProperties: false,
      },
      annotations: readOnlyAnnotations,
    },
    *decide(toolCall) {
      const checked = args.check(toolCall.args);
      if (!checked.ok) return checked;
      return yield* decideQuery(checked.section, checked.fields, toolCall, heads);
    },
  };
}

/** A whole number within these bounds. */
function isWithin(min: number, max: number): FieldCheck {
  return (value) =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
      ? null
      : `a whole number from ${min} to ${max}`;
}

const noSql = refuse('NO_SQL', 'sql is missing, or empty.');

function* decideQuery(
  section: SqlSection,
  fields: Fields,
  { caller, exactArgs }: ToolCall,
  heads: ResultHeads,
): Pieces<HandedDecision> {
  const { config, context } = section;
  const sql = (fields.sql as string | undefined) ?? '';
  if (sql.trim() === '') return noSql;
  const call = yield* findRefusedCall(sql);
  if (call !== null) {
    return refuse(
      'CALL_REFUSED',
      `The tool query does not run ${call}: it reads files, takes time, or shows other clients' statements.`,
    );
  }
  const params = fields.params === undefined ? [] : (exactArgs().params as Parameters);
  const wish: StatementWish = {
    caller,
    sql,
    params,
    paramsKey: 'params',
    readOnly: true,
    isSingle: true,
    needsEffect: false,
    rollbackOnError: false,
    asksServer: false,
    showsWarnings: false,
    format: null,
  };
  const maxBytes = context.maxStatementBytes();
  const decided = yield* decideStatement(config, wish, maxBytes, context.catalogue());
  if (!decided.ok) return decided;
  const maxRows = (fields.max_rows as number | undefined) ?? queryDefaults.maxRows;
  const maxResultBytes = (fields.max_bytes as number | undefined) ?? queryDefaults.maxBytes;
  return {
    ok: true,
    kind: 'run',
    run: {
      ok: true,
      kind: 'run',
      section,
      work: decided.statement,
      timeoutMs: (fields.timeout_ms as number | undefined) ?? queryDefaults.timeoutMs,
      format: chooseToolJson({
        heads,
        maxRows: lowerLimit(maxRows, config.maxRows),
        maxBytes: lowerLimit(maxResultBytes, config.maxResultBytes),
        showsServerText: true,
      }),
      ignoresToken: true,
      hintFor: createHint(params, 'params'),
    },
  };
}
