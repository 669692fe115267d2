// A process with node's own HTTP server, which reads as strictly as node can and tells how it has understood each request. It listens on
// the unix socket that argv names, and ends with its parent.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { describe } from './understood.ts';

const [, , socketPath = ''] = process.argv;
// The limit on headers is above the gateway's, and a connection ends only with its client.
const server = createServer({ maxHeaderSize: 1024 ** 2, keepAliveTimeout: 0 });
// Node would drop further headers in silence.
server.maxHeadersCount = 0;
/** Requests that are answered on each connection, while their replies have not left. */
const answering = new WeakMap<Duplex, number>();
const broken = new WeakSet<Duplex>();

function add(socket: Duplex, count: number): void {
  const left = (answering.get(socket) ?? 0) + count;
  answering.set(socket, left);
  if (left > 0 || !broken.has(socket) || !socket.writable) return;
  socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
}

/** Ends a connection behind the replies to what came before. The end of such a request is reported in this turn. */
function endInTurn(socket: Duplex): void {
  broken.add(socket);
  setImmediate(add, socket, 0);
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.once('end', () => {
    add(request.socket, 1);
    response.once('close', () => add(request.socket, -1));
    response.writeHead(200, { ...describe(request, Buffer.concat(chunks)), 'Content-Length': 0 });
    response.end();
  });
}

// A client leaves when it has heard enough.
server.on('connection', (socket) => socket.on('error', () => {}));
server.on('request', answer);
// Node would refuse it.
server.on('checkExpectation', answer);
// By default, node would forget the requests before the bytes that it refuses, and before CONNECT.
server.on('clientError', (_error, socket) => endInTurn(socket));
server.on('connect', (_request, socket) => endInTurn(socket));
server.listen(socketPath, () => process.send?.('ready'));
process.once('disconnect', () => process.exit(0));
