// A raw HTTP/1 client: sends exact bytes, reads replies strictly, distinguishes FIN from RST.
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { ByteSource, type End } from './byte-source.ts';
import { HttpReplyError } from './http-error.ts';

/** One whole reply. Header names keep their spelling; `header` finds them in any. */
export type RawReply = {
  readonly version: string;
  readonly status: number;
  readonly reason: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly header: (name: string) => string | undefined;
  /** The number of 1xx replies before it. */
  readonly interim: number;
  readonly body: Buffer;
  readonly framing: 'length' | 'chunked' | 'close' | 'none';
  /** Sizes of the chunks, if there were any. */
  readonly chunks: readonly number[];
};

/** One client connection. Replies are read in the order of the requests, pipelined or not. */
export type RawConnection = {
  readonly socket: Socket;
  readonly send: (bytes: string | Uint8Array) => void;
  /** Reads one reply (skipping 1xx). `toHead`: the request was a HEAD. Rejects with HttpReplyError. */
  readonly reply: (request?: { readonly toHead?: boolean }) => Promise<RawReply>;
  /** Resolves when a first byte has come, or the end. */
  readonly anything: () => Promise<void>;
  /** Resolves to how the peer ended the connection. */
  readonly ended: () => Promise<End>;
  /** The bytes that have arrived after the last reply, as text. They count as read then. */
  readonly received: () => string;
  /** The number of bytes that `received` would give. */
  readonly unread: () => number;
  /** Ends with FIN, in both directions. */
  readonly close: () => void;
  /** Ends with RST. */
  readonly reset: () => void;
};

/**
 * Connects to a port of the loopback address, or wherever `target` says. The caller must close it. `tellsResets`: whether
 * each end is looked up in the kernel's table, which takes long where that is full.
 */
export async function openRaw(
  target: number | NetConnectOpts,
  { timeoutMs = 30_000, tellsResets = true } = {},
): Promise<RawConnection> {
  const socket = connect(
    typeof target === 'number'
      ? { port: target, host: '127.0.0.1', allowHalfOpen: true }
      : { ...target, allowHalfOpen: true },
  );
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', () => resolve());
    socket.once('error', reject);
  });
  socket.removeAllListeners('error');
  socket.setNoDelay(true);
  const source = new ByteSource(socket, timeoutMs, tellsResets);
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    reply: (request = {}) => readReply(source, request.toHead === true),
    anything: () => source.any(),
    ended: () => source.end(),
    received: () => source.received().toString('latin1'),
    unread: () => source.waiting,
    close: () => socket.end(() => socket.destroy()),
    reset: () => void socket.resetAndDestroy(),
  };
}

/** Sends the bytes on a new connection, reads one reply, and closes. */
export async function exchange(
  target: number | NetConnectOpts,
  bytes: string | Uint8Array,
  options: { readonly timeoutMs?: number; readonly toHead?: boolean } = {},
): Promise<RawReply> {
  const connection = await openRaw(target, options);
  try {
    connection.send(bytes);
    return await connection.reply(options);
  } finally {
    connection.socket.destroy();
  }
}

async function readReply(source: ByteSource, toHead: boolean): Promise<RawReply> {
  for (let interim = 0; ; interim += 1) {
    const statusLine = await source.line();
    const match = /^HTTP\/(1\.[01]) (\d{3}) (.*)$/.exec(statusLine);
    if (match === null) throw malformed(`status line ${JSON.stringify(statusLine)}`);
    const [, version = '', code = '', reason = ''] = match;
    const headers = await readHeaders(source);
    const header = (name: string) =>
      headers.find(([candidate]) => candidate.toLowerCase() === name.toLowerCase())?.[1];
    const status = Number(code);
    if (status >= 100 && status < 200) continue;
    const bodyless = toHead || status === 204 || status === 304;
    const body = bodyless ? noBody : await readBody(source, header);
    return { version, status, reason, headers, header, interim, ...body };
  }
}

async function readHeaders(source: ByteSource): Promise<[string, string][]> {
  const headers: [string, string][] = [];
  for (;;) {
    const line = await source.line();
    if (line === '') return headers;
    const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line);
    if (match === null) throw malformed(`header ${JSON.stringify(line)}`);
    headers.push([match[1] ?? '', match[2] ?? '']);
  }
}

type Body = Pick<RawReply, 'body' | 'framing' | 'chunks'>;

const noBody: Body = { body: Buffer.alloc(0), framing: 'none', chunks: [] };

async function readBody(
  source: ByteSource,
  header: (name: string) => string | undefined,
): Promise<Body> {
  const length = header('content-length');
  const coding = header('transfer-encoding');
  if (length !== undefined && coding !== undefined) {
    throw malformed('Content-Length beside Transfer-Encoding');
  }
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked') throw malformed(`Transfer-Encoding ${coding}`);
    return readChunks(source);
  }
  if (length === undefined) return { body: await source.toEnd(), framing: 'close', chunks: [] };
  if (!/^\d+$/.test(length)) throw malformed(`Content-Length ${length}`);
  const body = await source.exactly(Number(length), 'a body with Content-Length');
  return { body, framing: 'length', chunks: [] };
}

async function readChunks(source: ByteSource): Promise<Body> {
  const parts: Buffer[] = [];
  try {
    for (;;) {
      const line = await source.line();
      if (!/^[0-9A-Fa-f]+$/.test(line)) throw malformed(`chunk size ${JSON.stringify(line)}`);
      const size = Number.parseInt(line, 16);
      if (size === 0) break;
      parts.push(await source.exactly(size, 'a chunk'));
      if ((await source.line()) !== '') throw malformed('a chunk longer than its size');
    }
    await readHeaders(source);
  } catch (error) {
    // The error has everything that had arrived of the body, not only the bytes of its last read.
    if (!(error instanceof HttpReplyError)) throw error;
    throw new HttpReplyError(error.fault, error.message, Buffer.concat([...parts, error.received]));
  }
  return {
    body: Buffer.concat(parts),
    framing: 'chunked',
    chunks: parts.map((part) => part.length),
  };
}

function malformed(detail: string): HttpReplyError {
  return new HttpReplyError('malformed', detail);
}
