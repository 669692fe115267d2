// The named statements of a client as tools: their schemas and annotations, and how a call of one runs.
import type { Client } from '../../../shared/clients/client.ts';
import { isAllowed } from '../../../shared/clients/client.ts';
import type { JsonSchema } from '../../../shared/named/parameter-schema.ts';
import { keyArgument, type NamedStatement } from '../../../shared/named/statement.ts';
import type { Pieces } from '../../../shared/pieces.ts';
import type { FormatChoice } from '../../encode/format.ts';
import { chooseNamedBatch } from '../../encode/formats/named-batch.ts';
import { chooseNamedOne } from '../../encode/formats/named-one.ts';
import { chooseToolJson, createToolHeads, writeToolError } from '../../encode/formats/tool-json.ts';
import { createOneHeads } from '../../encode/formats/v1-heads.ts';
import { chooseV1Json, type V1ReplyOptions } from '../../encode/formats/v1-json.ts';
import type { ResultHeads } from '../../encode/result-rows.ts';
import type { Work } from '../../execution/executor.ts';
import { refusal, refuse } from '../../failure/failure.ts';
import { timeoutOf } from '../../request/exchange.ts';
import type { Call } from '../endpoint.ts';
import type { Fields } from '../fields.ts';
import type { HandedDecision } from '../handed-over.ts';
import { decideNamed, type KeyOfCall } from '../named/call.ts';
import type { NamedEntry, NamedStatements } from '../named/statements.ts';
import { lowerLimit, type SqlSection } from '../sections.ts';
import { isKey, keyOf } from '../v1/idempotency.ts';
import { queryDefaults, queryLimits } from './query-tool.ts';
import type { NamedTools, ObjectSchema, Tool, ToolCall } from './tools.ts';

/** The heads of results, which all tools of a worker share. */
type Heads = { readonly rows: ResultHeads; readonly one: ResultHeads };

type Kept = {
  readonly entries: readonly NamedEntry[];
  readonly states: readonly object[];
  readonly tools: readonly Tool[];
};

/** Creates the tools of one worker. Those of a client are kept until its statements are replaced, or the database was read again. */
export function createNamedTools(statements: NamedStatements): NamedTools {
  const heads: Heads = {
    rows: createToolHeads(),
    one: createOneHeads({ rows: 'object', numbers: 'exact', json: 'value' }),
  };
  const kept = new WeakMap<Client, Kept>();
  return (client) => {
    const entries = statements.list(client);
    const { states } = statements;
    const known = kept.get(client);
    if (known !== undefined && known.entries === entries && areSame(known.states, states)) {
      return known.tools;
    }
    const tools = entries.map((entry) =>
      createTool(entry, statements.sectionOf(client, entry), isAllowed(client, 'sql'), heads),
    );
    kept.set(client, { entries, states, tools });
    return tools;
  };
}

function areSame(some: readonly object[], others: readonly object[]): boolean {
  return some.length === others.length && some.every((one, at) => one === others[at]);
}

function createTool(
  entry: NamedEntry,
  section: SqlSection,
  showsServerText: boolean,
  heads: Heads,
): Tool {
  const { statement } = entry;
  const { name, description, isRead, isKeyRequired } = statement;
  const takesKey = !isRead && section.config.idempotencyTable !== null;
  return {
    definition: {
      name,
      description: description === '' ? `The named statement ${name}.` : description,
      inputSchema: inputOf(entry, takesKey),
      outputSchema: outputOf(entry),
      annotations: {
        readOnlyHint: isRead,
        destructiveHint: !isRead && !onlyAdds(statement),
        // An optional key may be missing, and then a repetition writes again.
        idempotentHint: isRead || isKeyRequired,
        openWorldHint: false,
      },
    },
    decide: (toolCall) => decide(entry, section, { takesKey, showsServerText }, toolCall, heads),
  };
}

const keySchema = {
  type: 'string',
  pattern: '^[\\x21-\\x7e]{1,255}$',
  description:
    'A new random text for each intended write. If the outcome of a call is unknown, repeat the call with the same text: it takes effect once.',
};

function inputOf({ parameters, statement }: NamedEntry, takesKey: boolean): ObjectSchema {
  const schema = parameters as ObjectSchema;
  if (!takesKey) return schema;
  const required = [...(schema.required ?? []), ...(statement.isKeyRequired ? [keyArgument] : [])];
  return {
    ...schema,
    properties: { ...schema.properties, [keyArgument]: keySchema },
    ...(required.length > 0 && { required }),
  };
}

const counts = {
  affected_rows: { type: 'integer' },
  insert_id: { type: ['string', 'null'] },
  warnings: { type: 'integer' },
};

/** The schema of a result. That of a write requires little: its rows may be left out, and a CALL may have several results. */
function outputOf({ statement: { kind, isRead }, row }: NamedEntry): ObjectSchema {
  switch (kind) {
    case 'one':
      return isRead && row !== null ? (row as ObjectSchema) : { type: 'object', properties: {} };
    case 'many':
      return {
        type: 'object',
        properties: gridOf(row),
        ...(isRead && { required: ['columns', 'rows', 'row_count', 'truncated'] }),
      };
    case 'exec':
      return { type: 'object', properties: counts };
    case 'batch':
      return {
        type: 'object',
        properties: {
          committed: { const: true },
          ...counts,
          ...gridOf(row),
          steps: { type: 'object' },
          retries: { type: 'integer' },
        },
      };
    default:
      return kind satisfies never;
  }
}

/** Names of columns, and rows as arrays. `required` has the columns in their order, and `properties` need not. */
function gridOf(row: JsonSchema | null): Readonly<Record<string, object>> {
  const { properties, required } = (row ?? {}) as Partial<ObjectSchema>;
  const cells =
    required?.map((name) => withoutEncoding((properties?.[name] ?? {}) as JsonSchema)) ?? [];
  return {
    columns: { type: 'array', items: { type: 'string' } },
    rows: {
      type: 'array',
      items: { type: 'array', ...(cells.length > 0 && { prefixItems: cells }) },
    },
    row_count: { type: 'integer' },
    truncated: { type: 'boolean' },
  };
}

/** Bytes may appear as their size. */
function withoutEncoding({ contentEncoding: _, ...cell }: JsonSchema): object {
  return cell;
}

const addition = /^insert\b(?!.*\bon\s+duplicate\b)/is;
/** Without brackets nothing is called, and what is called may write. */
const plainRead = /^select\b[^(]*$/is;

/** Whether a statement that writes only adds rows, as far as its text shows. */
function onlyAdds({ parts }: NamedStatement): boolean {
  return parts.every(({ sql }) => addition.test(sql) || plainRead.test(sql));
}

type Options = { readonly takesKey: boolean; readonly showsServerText: boolean };

const badKey = refuse(
  'IDEMPOTENCY_KEY',
  `${keyArgument} must be a text of 1 to 255 visible ASCII characters.`,
);
const keyMissing = refusal(
  'KEY_REQUIRED',
  `This tool needs ${keyArgument}, so that a repetition does not execute it again.`,
);

function* decide(
  entry: NamedEntry,
  section: SqlSection,
  { takesKey, showsServerText }: Options,
  { call, caller, exactArgs }: ToolCall,
  heads: Heads,
): Pieces<HandedDecision> {
  const { statement } = entry;
  const { name, isRead, isKeyRequired } = statement;
  call.record.named = name;
  const { key, params } = takesKey ? splitKey(exactArgs()) : { key: null, params: exactArgs() };
  if (key === null && isKeyRequired) return { ok: false, failure: keyMissing };
  if (key !== null && !isKey(key)) return badKey;
  const keyFor =
    key === null ? null : (owner: string) => findKey(section, key, call, owner, { name, params });
  const named = {
    entry,
    section,
    caller,
    given: { kind: 'json', params },
    readOnly: isRead,
    format: null,
  } as const;
  const decided = yield* decideNamed(named, { keyFor, held: null });
  if (!decided.ok) return decided;
  const { work, explain, ownClaims } = decided;
  const { requestId } = call.record;
  const format = chooseFormat(statement, section, { work, requestId, showsServerText }, heads);
  const run = { ok: true, kind: 'run', section, work, timeoutMs: null, format } as const;
  return {
    ok: true,
    kind: 'run',
    run: { ...run, ignoresToken: true, explain, ownClaims },
  };
}

/** An argument that is null counts as absent. */
function splitKey({ [keyArgument]: key = null, ...params }: Fields) {
  return { key, params };
}

/** The hash covers the name of the tool and its arguments: ids of messages repeat. */
function* findKey(
  { config }: SqlSection,
  key: string,
  { request, head }: Call,
  owner: string,
  wanted: Fields,
): Pieces<KeyOfCall> {
  const asked = { request, head, record: { caller: { owner } } };
  const keyed = yield* keyOf(config, key, asked, { exact: () => wanted });
  if (!keyed.ok) return keyed;
  if (keyed.key === null) throw new Error('a call with a key has one');
  return { ok: true, key: { ...keyed.key, timeoutMs: timeoutOf(config, null) } };
}

type Wanted = {
  readonly work: Work;
  readonly requestId: string;
  readonly showsServerText: boolean;
};

/** Rows of reads are limited as those of the tool `query`. Other results are at most as large as it can be asked for. */
function chooseFormat(
  { kind, isRead, parts }: NamedStatement,
  { config, context }: SqlSection,
  { work, requestId, showsServerText }: Wanted,
  heads: Heads,
): FormatChoice {
  const maxRows = lowerLimit(queryDefaults.maxRows, config.maxRows);
  if (kind === 'many' && isRead) {
    const maxBytes = lowerLimit(queryDefaults.maxBytes, config.maxResultBytes);
    return chooseToolJson({ heads: heads.rows, maxRows, maxBytes, showsServerText });
  }
  const options: V1ReplyOptions = {
    heads: kind === 'one' ? heads.one : heads.rows,
    section: context.sectionJson,
    requestId,
    rowModule: null,
    maxRows: kind === 'one' ? 1 : maxRows,
    maxResultBytes: lowerLimit(queryLimits.maxBytes, config.maxResultBytes),
    renames: parts.map(() => !isRead),
    cutsLongWrites: !isRead,
    isDryRun: false,
    isKept: work.kind === 'batch' && work.key !== null,
    writeFailure: (out, failure) => writeToolError(out, failure, showsServerText),
  };
  if (kind === 'batch') return chooseNamedBatch({ ...options, parts });
  return kind === 'one' ? chooseNamedOne({ ...options, isBare: true }) : chooseV1Json(options);
}
