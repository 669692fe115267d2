// Tries node's internals when a worker starts: a small server of the worker's own kind must say with each of them what it
// says without. Must not know what the worker serves, nor its log.
import { randomBytes, randomUUID } from 'node:crypto';
import { type ListenOptions, type NetConnectOpts, connect as openSocket } from 'node:net';
import {
  allInternals,
  easeSocketCreation,
  type NodeInternals,
  noInternals,
  tellsTakenBytes,
} from './node-internals.ts';
import { Peers } from './peers.ts';
import type { OutgoingReply } from './reply.ts';
import { HttpServer, type RequestHandler } from './server.ts';

/** What was found. */
export type InternalsVerdict = {
  /** Those that may be used. */
  readonly internals: NodeInternals;
  /** What is done in the documented way instead, in the log's words. */
  readonly replaced: readonly string[];
};

/** In the order in which they are added to each other. */
const namesInLog: Readonly<Record<keyof NodeInternals, string>> = {
  takenParser: 'taken parser',
  repliesAtOnce: 'replies at once',
  sharedReads: 'shared reads',
};

/** A conversation takes milliseconds, unless others have the processor: what hangs is not used. */
const mostMs = 2_000;
/** More than one read may bring. Its period divides no power of two: what is shifted, doubled or lost shows. */
const uploadBytes = 70_000;
const periodBytes = 251;

const wholeReply = 'HTTP/1.1 200 OK\r\n';

const timeouts = {
  headersMs: mostMs,
  requestMs: mostMs,
  stallMs: mostMs,
  sameHostStallMs: mostMs,
  unseenStallMs: mostMs,
  beyondLimitMs: mostMs,
  checkMs: mostMs,
};

const settings = {
  maxUrlBytes: 1_000,
  maxBufferedBytes: 1024 ** 2,
  keepaliveTimeoutMs: 5_000,
  connections: { served: 1, reserved: 1 },
  timeouts,
  peers: new Peers(timeouts),
  tls: null,
};

/** Where it may listen, whatever else is forbidden: nobody else finds it, and it is closed at once. */
const places: readonly (() => ListenOptions)[] = [
  () => ({ host: '127.0.0.1', port: 0 }),
  // A name of Linux's, that is no file.
  () => ({ path: `\0dbhttpd-${randomUUID()}` }),
];

/**
 * Tries all of them, and eases the creation of sockets. Nothing else may run meanwhile: what is thrown is taken for the
 * internals'. Where they are as they are known it takes 25 ms of CPU, less once its code is warm (Node 20.20, a busy
 * machine); where they hang, `mostMs` for each. Never rejects.
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
    let found: Found = { internals: noInternals, told: plain };
    const add = async (more: Partial<NodeInternals>): Promise<boolean> => {
      const internals = { ...found.internals, ...more };
      const told = await converse(internals, place(), upload);
      if (told?.text !== plain.text) return false;
      found = { internals, told };
      return true;
    };
    // What failed is tried once more, one after the other: a moment's trouble of the machine switches nothing off.
    if (!(await add(allInternals))) {
      for (const [name, words] of Object.entries(namesInLog)) {
        if (!(await add({ [name]: true }))) replaced.push(words);
      }
    }
    if (!found.told.tellsTakenBytes) replaced.push('bytes taken');
    return { internals: found.internals, replaced };
  }
  replaced.push(...Object.keys(allInternals).map((name) => `${name} (not tried)`));
  return { internals: noInternals, replaced };
}

/** What a client was told; its Date apart. */
type Told = { readonly text: string; readonly tellsTakenBytes: boolean };

/** What is used so far, and what was told by it. */
type Found = { readonly internals: NodeInternals; readonly told: Told };

/** A server answers one client with these internals; null: it did not end well, or not in time. */
async function converse(
  internals: NodeInternals,
  place: ListenOptions,
  upload: Buffer,
): Promise<Told | null> {
  let tells = false;
  const http = new HttpServer(
    settings,
    (request, response, isBeyondLimit) => {
      tells = tellsTakenBytes(request.socket);
      return echo(request, response, isBeyondLimit);
    },
    internals,
  );
  const { server } = http;
  let timer: NodeJS.Timeout | undefined;
  const given = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, mostMs, null);
    process.setUncaughtExceptionCaptureCallback(() => resolve(null));
    server.once('error', () => resolve(null));
  });
  const said = new Promise<string>((resolve) => {
    // Exclusive: a worker would else ask the supervisor for the address.
    server.listen({ ...place, exclusive: true }, () => {
      const address = server.address();
      const target: NetConnectOpts =
        typeof address === 'string' || address === null
          ? { path: String(place.path) }
          : { host: address.address, port: address.port };
      ask(target, requests(upload), resolve);
    });
  });
  const text = await Promise.race([said, given]).catch(() => null);
  clearTimeout(timer);
  process.setUncaughtExceptionCaptureCallback(null);
  http.destroyConnections();
  server.close();
  return text === null || text.split(wholeReply).length !== 5
    ? null
    : { text, tellsTakenBytes: tells };
}

/** Pipelined: a request without a body, one with a body longer than a read, one in chunks, and one that is the last. */
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

/** Sends the bytes, and tells all that comes back when the connection has gone. */
function ask(target: NetConnectOpts, bytes: Buffer, told: (text: string) => void): void {
  const client = openSocket(target);
  let text = '';
  client.setEncoding('latin1');
  client.on('data', (piece: string) => {
    text += piece;
  });
  client.on('error', () => {});
  client.on('close', () => told(text.replace(/\r\nDate: [^\r]*/g, '')));
  client.write(bytes);
}

/** Answers with the request's own body behind its URL. */
const echo: RequestHandler = (request, response: OutgoingReply) => {
  let body = `${request.url} `;
  request.on('data', (piece: Buffer) => {
    body += piece.toString('latin1');
  });
  request.on('end', () => {
    response.addHeaders(['X-Added', 'yes']);
    response.sendWhole(200, `Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n`, body);
  });
  return { requestId: 'none', closed: () => {} };
};
