// Ordinary requests to a gateway, each on its own connection unless stated otherwise; any answer is the reply.
import { type Agent, type IncomingHttpHeaders, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { blackBox } from './black-box.ts';
import { type JsonValue, parseStrictJson } from './strict-json.ts';

/** One whole reply; a connection cut before its end is an error instead. */
export type Reply = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
  /** The body as JSON.parse reads it. The caller gives its type. */
  readonly json: <Shape = unknown>() => Shape;
  /** The body read strictly, with every digit. */
  readonly exact: () => JsonValue;
};

/** The parts of a request beside its path. */
export type Options = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly timeoutMs?: number;
  /** The agent with the connections; a new connection by default. */
  readonly agent?: Agent;
};

/** Requests to one gateway. */
export type Ask = {
  readonly request: (path: string, options?: Options) => Promise<Reply>;
  readonly get: (path: string, options?: Options) => Promise<Reply>;
  /** GET /db with the request as URL-encoded JSON. */
  readonly db: (request: object, options?: Options) => Promise<Reply>;
  /** POST /db with the request as a JSON body. */
  readonly dbPost: (request: object, options?: Options) => Promise<Reply>;
  /** Sends a POST with a JSON body. A string is sent unchanged. */
  readonly post: (path: string, body: object | string, options?: Options) => Promise<Reply>;
};

/** The number of characters of a reply that a failed test prints. */
const maxShownReply = 200;

/** Creates the requests for the gateway at `url`. Each rejects on a connection fault or after 30 s. */
export function createAsk(url: string): Ask {
  const send = async (path: string, options: Options = {}) => {
    const asked = `${options.method ?? 'GET'} ${url}${path} ${options.body ?? ''}`;
    try {
      const reply = await exchange(new URL(url), path, options);
      blackBox.recordRequest(`${asked} -> ${reply.status} ${reply.text.slice(0, maxShownReply)}`);
      return reply;
    } catch (error) {
      blackBox.recordRequest(`${asked} -> ${String(error)}`);
      throw error;
    }
  };
  const post = (path: string, body: object | string, options: Options = {}) =>
    send(path, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...options,
      headers: { 'Content-Type': 'application/json', ...options.headers },
    });
  return {
    request: send,
    get: send,
    db: (asked, options) => send(`/db?${encodeURIComponent(JSON.stringify(asked))}`, options),
    dbPost: (asked, options) => post('/db', asked, options),
    post,
  };
}

function exchange(base: URL, path: string, options: Options): Promise<Reply> {
  const timeoutMs = options.timeoutMs ?? 30_000;
  return new Promise((resolve, reject) => {
    const outgoing = (base.protocol === 'https:' ? requestTls : request)(
      {
        host: base.hostname,
        port: base.port,
        path,
        method: options.method ?? 'GET',
        headers: options.headers ?? {},
        agent: options.agent ?? false,
        rejectUnauthorized: false,
        signal: AbortSignal.timeout(timeoutMs),
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.once('error', reject);
        incoming.once('end', () => {
          resolve(createReply(incoming.statusCode ?? 0, incoming.headers, Buffer.concat(chunks)));
        });
      },
    );
    outgoing.once('error', reject);
    outgoing.end(options.body);
  });
}

/** Creates the reply that has come whole. Names of headers are in lower case. */
export function createReply(status: number, headers: IncomingHttpHeaders, body: Buffer): Reply {
  return {
    status,
    headers,
    body,
    get text() {
      return body.toString('utf8');
    },
    json: <Shape>() => JSON.parse(body.toString('utf8')) as Shape,
    exact: () => parseStrictJson(body),
  };
}
