// The test of node's internals when a worker starts: a small server must give the same replies with each of them as without.
import { randomBytes, randomUUID } from 'node:crypto';
import { type ListenOptions, type NetConnectOpts, connect as openSocket } from 'node:net';
import { strictHeads } from './head-form.ts';
import {
  allInternals,
  easeSocketCreation,
  hasByteCounts,
  type NodeInternals,
  noInternals,
} from './node-internals.ts';
import { Peers } from './peers.ts';
import { HttpServer, type RequestHandler } from './server.ts';

/** The result of the test. */
export type InternalsVerdict = {
  /** Which internals the worker may use. */
  readonly internals: NodeInternals;
  /** The documented ways in use instead, as the log names them. */
  readonly replaced: readonly string[];
};

/** In the order in which they are tried. */
const namesInLog: Readonly<Record<keyof NodeInternals, string>> = {
  takenParser: 'taken parser',
  repliesAtOnce: 'replies at once',
  sharedReads: 'shared reads',
};

/** A conversation takes milliseconds unless the machine is busy. What takes longer than this is not used. */
const maxMs = 2_000;
/** More than one read. Its period divides no power of two, so that shifted, doubled or lost bytes show. */
const uploadBytes = 70_000;
const periodBytes = 251;

const wholeReply = 'HTTP/1.1 200 OK\r\n';

const timeouts = {
  headersMs: maxMs,
  requestMs: maxMs,
  stallMs: maxMs,
  sameHostStallMs: maxMs,
  unseenStallMs: maxMs,
  beyondLimitMs: maxMs,
  checkMs: maxMs,
};

const settings = {
  maxUrlBytes: 1_000,
  heads: strictHeads,
  maxBufferedBytes: 1024 ** 2,
  keepaliveTimeoutMs: 5_000,
  connections: { served: 1, reserved: 1 },
  timeouts,
  peers: new Peers(timeouts),
  tls: null,
};

/** Addresses for the server. The second one works if TCP is forbidden. */
const places: readonly (() => ListenOptions)[] = [
  () => ({ host: '127.0.0.1', port: 0 }),
  // A name in Linux's abstract namespace, which is not a file.
  () => ({ path: `\0dbhttpd-${randomUUID()}` }),
];

/**
 * Tests all internals, and calls `easeSocketCreation`. Nothing else may run meanwhile, because any exception counts against the internals.
 * It takes 25 ms of CPU, or less once its code is warm (Node 20.20, a busy machine), and up to `maxMs` for each that hangs. Never rejects.
 */
export async function checkNodeInternals(): Promise<InternalsVerdict> {
  const replaced: string[] = [];
  try {
    easeSocketCreation();
  } catch {
    replaced.push('socket creation');
  }
  const upload = Buffer.alloc(uploadBytes, randomBytes(periodBytes));
  for (const place of places) {
    const plain = await converse(noInternals, place(), upload);
    if (plain === null) continue;
    let found = { internals: noInternals, conversation: plain };
    const add = async (more: Partial<NodeInternals>): Promise<boolean> => {
      const internals = { ...found.internals, ...more };
      const conversation = await converse(internals, place(), upload);
      if (conversation?.text !== plain.text) return false;
      found = { internals, conversation };
      return true;
    };
    // If they fail together, each is tried by itself. So a moment's trouble of the machine switches nothing off.
    if (!(await add(allInternals))) {
      for (const [name, words] of Object.entries(namesInLog)) {
        if (!(await add({ [name]: true }))) replaced.push(words);
      }
    }
    if (!found.conversation.hasByteCounts) replaced.push('bytes taken');
    return { internals: found.internals, replaced };
  }
  replaced.push(...Object.keys(allInternals).map((name) => `${name} (not tried)`));
  return { internals: noInternals, replaced };
}

/** All that a client received, without Date. */
type Conversation = { readonly text: string; readonly hasByteCounts: boolean };

/** Lets a server with these internals answer one client; null: it failed, or took too long. */
async function converse(
  internals: NodeInternals,
  place: ListenOptions,
  upload: Buffer,
): Promise<Conversation | null> {
  let isCounted = false;
  const http = new HttpServer(
    settings,
    (request, reply, isBeyondLimit) => {
      isCounted = hasByteCounts(request.socket);
      return echo(request, reply, isBeyondLimit);
    },
    internals,
  );
  const { server } = http;
  let timer: NodeJS.Timeout | undefined;
  const failed = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, maxMs, null);
    process.setUncaughtExceptionCaptureCallback(() => resolve(null));
    server.once('error', () => resolve(null));
  });
  const received = new Promise<string>((resolve) => {
    // Exclusive: otherwise a worker asks the supervisor for the address.
    server.listen({ ...place, exclusive: true }, () => {
      const address = server.address();
      const target: NetConnectOpts =
        typeof address === 'string' || address === null
          ? { path: String(place.path) }
          : { host: address.address, port: address.port };
      ask(target, requests(upload), resolve);
    });
  });
  const text = await Promise.race([received, failed]).catch(() => null);
  clearTimeout(timer);
  process.setUncaughtExceptionCaptureCallback(null);
  http.destroyConnections();
  server.close();
  return text === null || text.split(wholeReply).length !== 5
    ? null
    : { text, hasByteCounts: isCounted };
}

/** Pipelined requests: without a body, with a body longer than one read, in chunks, and the last one. */
function requests(upload: Buffer): Buffer {
  const head = (line: string, more: string) => `${line} HTTP/1.1\r\nHost: check\r\n${more}\r\n`;
  return Buffer.concat([
    Buffer.from(head('GET /first', '')),
    Buffer.from(head('POST /long', `Content-Length: ${upload.length}\r\n`)),
    upload,
    Buffer.from(head('POST /chunked', 'Transfer-Encoding: chunked\r\n')),
    Buffer.from('5\r\nh\u00e9llo\r\n0\r\n\r\n', 'latin1'),
    Buffer.from(head('GET /last', 'Connection: close\r\n')),
  ]);
}

/** Sends the bytes, and calls `done` with all that was received when the connection is closed. */
function ask(target: NetConnectOpts, bytes: Buffer, done: (text: string) => void): void {
  const client = openSocket(target);
  let text = '';
  client.setEncoding('latin1');
  client.on('data', (piece: string) => {
    text += piece;
  });
  client.on('error', () => {});
  client.on('close', () => done(text.replace(/\r\nDate: [^\r]*/g, '')));
  client.write(bytes);
}

/** Answers with the URL and the body of the request. */
const echo: RequestHandler = (request, reply) => {
  let body = `${request.url} `;
  request.on('data', (piece: Buffer) => {
    body += piece.toString('latin1');
  });
  request.on('end', () => {
    reply.addHeaders(['X-Added', 'yes']);
    reply.sendWhole(200, `Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n`, body);
  });
  return { requestId: 'none', closed: () => {} };
};
