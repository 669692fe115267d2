// The tools of a client: their list, which is built once, and what a call of one does.
import type { Caller } from '../../../shared/clients/caller.ts';
import { type Client, isAllowed } from '../../../shared/clients/client.ts';
import type { Pieces } from '../../../shared/pieces.ts';
import type { Failure } from '../../failure/failure.ts';
import type { Call } from '../endpoint.ts';
import type { Fields } from '../fields.ts';
import type { HandedDecision } from '../handed-over.ts';

/** A JSON Schema (2020-12) of an object. */
export type ObjectSchema = {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
};

/** A tool as clients see it. Its texts come from this program and the operator's files, never from the database. */
export type ToolDefinition = {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: ObjectSchema;
  /** Set if the results are structured content too. */
  readonly outputSchema?: ObjectSchema;
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
};

/** The annotations of a tool that reads this database, and does nothing else. */
export const readOnlyAnnotations: ToolDefinition['annotations'] = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

/** One call of a tool. */
export type ToolCall = {
  readonly call: Call;
  readonly caller: Caller;
  /** They are not checked yet. */
  readonly args: Fields;
  /** The same with every digit of their numbers. */
  readonly exactArgs: () => Fields;
};

/** A tool. */
export type Tool = {
  readonly definition: ToolDefinition;
  /** Decides on a call. Never throws. */
  readonly decide: (call: ToolCall) => Pieces<HandedDecision>;
};

/** The tools of one client. */
export type ToolSet = {
  /** Sorted by name. */
  readonly definitions: readonly ToolDefinition[];
  readonly byName: ReadonlyMap<string, Tool>;
  /** Whether its client may see MySQL's own words. */
  readonly showsServerText: boolean;
};

/** The named statements that a client may call, as tools. The same array until they are loaded again. */
export type NamedTools = (client: Client) => readonly Tool[];

/** The tools that are no named statements. */
export const sqlTools = ['describe', 'query'] as const;

/** Keeps the set of tools of each client. */
export class ToolSets {
  readonly #forSql: (client: Client) => readonly Tool[];
  readonly #namedTools: NamedTools;
  readonly #kept = new WeakMap<
    Client,
    { readonly named: readonly Tool[]; readonly set: ToolSet }
  >();

  /** @param forSql creates the tools of a client that may use SQL */
  constructor(forSql: (client: Client) => readonly Tool[], namedTools: NamedTools) {
    this.#forSql = forSql;
    this.#namedTools = namedTools;
  }

  of(client: Client): ToolSet {
    const named = this.#namedTools(client);
    const kept = this.#kept.get(client);
    if (kept !== undefined && kept.named === named) return kept.set;
    const set = this.#create(client, named);
    this.#kept.set(client, { named, set });
    return set;
  }

  #create(client: Client, named: readonly Tool[]): ToolSet {
    const showsServerText = isAllowed(client, 'sql');
    const tools = [...(showsServerText ? this.#forSql(client) : []), ...named];
    const byName = new Map(tools.map((tool) => [tool.definition.name, tool]));
    const names = [...byName.keys()].sort();
    const definitions = names.map((name) => (byName.get(name) as Tool).definition);
    return { definitions, byName, showsServerText };
  }
}

/** The result of a call. */
export type ToolResult =
  | { readonly ok: true; readonly json: string }
  | { readonly ok: false; readonly json: string; readonly failure: Failure | null };

/** Characters that a terminal obeys or that nothing shows: JSON may have them in strings as they are. */
const hidden =
  /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;

/** The same JSON with every hidden character of its strings as an escape, so that people and models see what is there. */
export function showHidden(json: string): string {
  return json.replace(hidden, (found) =>
    [...Array(found.length).keys()]
      .map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
