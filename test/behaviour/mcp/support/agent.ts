// An agent by plain HTTP: messages of the Model Context Protocol in each of its revisions, and the calls of tools.
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after } from 'node:test';
import type { Ask, Options, Reply } from '../../../support/ask.ts';

/** The revisions that the gateway serves. */
export const revisions = ['2026-07-28', '2025-11-25', '2025-06-18'] as const;
export type Revision = (typeof revisions)[number];

type Members = Readonly<Record<string, unknown>>;

/** A message's answer: JSON-RPC 2.0. */
export type Answer = {
  readonly reply: Reply;
  readonly result?: Members;
  readonly error?: { readonly code: number; readonly message: string };
};

/** The object of a call that failed. */
export type ToolError = {
  readonly code: string;
  readonly errno?: number;
  readonly sqlstate?: string;
  readonly message?: string;
  readonly outcome: string;
  readonly retryable: boolean;
};

/** The result of a tool. The caller gives the type of its JSON. */
export type Outcome<Shape = Members> = {
  readonly isError: boolean;
  readonly text: string;
  readonly json: Shape;
};

/** Rows as `query` returns them. */
export type Rows = {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  readonly row_count: number;
  readonly truncated: boolean;
  readonly shortened_cells?: number;
  readonly warnings?: number;
};

/** One agent. */
export type TestAgent = {
  /** Sends a request. */
  readonly send: (method: string, params?: Members, options?: Options) => Promise<Answer>;
  /** Calls a tool, which may fail. */
  readonly call: <Shape = Members>(name: string, args: object) => Promise<Outcome<Shape>>;
  /** Runs a statement that must succeed. */
  readonly query: (sql: string, more?: object) => Promise<Rows>;
  /** Runs a statement that must fail. */
  readonly fail: (sql: string, more?: object) => Promise<ToolError>;
};

const both = 'application/json, text/event-stream';

/** The members that a message has in the revision without a handshake. */
export const envelope = {
  _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  },
};

/** The headers of a message. */
export function headersOf(revision: Revision, method: string, params: Members = {}) {
  const isModern = revision === '2026-07-28';
  return {
    Accept: both,
    'MCP-Protocol-Version': revision,
    ...(isModern ? { 'Mcp-Method': method } : {}),
    ...(isModern && typeof params.name === 'string' ? { 'Mcp-Name': params.name } : {}),
  };
}

/** The object of a request. */
export function messageOf(revision: Revision, method: string, params: Members = {}): object {
  const more = revision === '2026-07-28' ? envelope : {};
  return { jsonrpc: '2.0', id: 1, method, params: { ...params, ...more } };
}

/** The JSON of a reply, which may be one event of a stream. */
export function payloadOf(reply: Reply): Members {
  const isStream = reply.headers['content-type']?.startsWith('text/event-stream') === true;
  const data = isStream ? /^data: (.*)$/m.exec(reply.text)?.[1] : reply.text;
  return JSON.parse(data ?? '') as Members;
}

/** Creates an agent; its connections end with the file. @param credentials further headers of its requests, which are asked for at each */
export function createAgent(
  gateway: () => Ask,
  revision: Revision = '2026-07-28',
  credentials: () => Readonly<Record<string, string>> = () => ({}),
): TestAgent {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  after(() => agent.destroy());
  const send: TestAgent['send'] = async (method, params = {}, options = {}) => {
    const headers = {
      ...headersOf(revision, method, params),
      ...credentials(),
      ...options.headers,
    };
    const message = messageOf(revision, method, params);
    const reply = await gateway().post('/mcp', message, { agent, ...options, headers });
    return { reply, ...payloadOf(reply) };
  };
  const call = async <Shape>(name: string, args: object): Promise<Outcome<Shape>> => {
    const { reply, result } = await send('tools/call', { name, arguments: args });
    assert.equal(reply.status, 200, reply.text);
    assert.ok(result !== undefined, reply.text);
    const [content] = result.content as { readonly type: string; readonly text: string }[];
    assert.equal(content?.type, 'text');
    const text = content?.text ?? '';
    return { isError: result.isError === true, text, json: JSON.parse(text) as Shape };
  };
  return {
    send,
    call,
    query: async (sql, more = {}) => {
      const { isError, text, json } = await call<Rows>('query', { sql, ...more });
      assert.equal(isError, false, text);
      return json;
    },
    fail: async (sql, more = {}) => {
      const { isError, text, json } = await call<{ error: ToolError }>('query', { sql, ...more });
      assert.equal(isError, true, `${sql}: ${text}`);
      return json.error;
    },
  };
}
