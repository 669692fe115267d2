// A reply: a head, and the bytes of a body, written to the socket of the connection that its request came on.
import type { Socket } from 'node:net';
import type { FailureCode } from '../../shared/failure-codes.ts';
import { createSecondClock } from '../../shared/observe/time-text.ts';
import { renderPlainFailure } from '../encode/formats/problem.ts';
import { headerLines, withoutHeaders } from '../encode/head.ts';
import type { RenderFailure } from '../failure/failure.ts';
import { STATUS_CODES } from './node-http.ts';
import type { IncomingRequest } from './request.ts';

/** The statements whose results are a reply. */
export interface Attended {
  /** The reply has left, or its connection is gone. Called before the next request on the connection is handled. */
  closed(): void;
}

/** The connection that a reply is written to. */
export interface ReplyConnection {
  readonly socket: Socket;
  readonly isForwarded: boolean;
  /** Header lines of replies behind which the connection stays open. */
  readonly keepAliveLines: string;
  /** The reply has left whole: the system has taken all of it. */
  replied(): void;
}

const connectionCloses = 'Connection: close\r\n';
const chunkedCoding = 'Transfer-Encoding: chunked\r\n';
const lastChunk = '0\r\n\r\n';
const nothing = Buffer.alloc(0);

/** The value of Date (RFC 9110 section 5.6.7). */
const date = createSecondClock((second) => new Date(second * 1000).toUTCString());

/** The first line of a reply, with its end. A status that no registry names has an empty reason (RFC 9112 section 4). */
export function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
}

const closeToken = /(?:^|[\s,])close(?:$|[\s,])/i;
const keepAliveToken = /(?:^|[\s,])keep-alive(?:$|[\s,])/i;

/** Whether the connection may stay open behind the reply to a request (RFC 9112 section 9.3). */
function mayKeepAlive({ method, headers, httpVersion }: IncomingRequest): boolean {
  const { connection = '', upgrade } = headers;
  // The bytes behind it may be of another protocol, or a proxy may take them for that (RFC 9110 section 7.8, RFC 9112 section 6.1).
  if (upgrade !== undefined || method === 'CONNECT') return false;
  if (connection !== '' && closeToken.test(connection)) return false;
  if (httpVersion === '1.1') return true;
  return keepAliveToken.test(connection) && headers['transfer-encoding'] === undefined;
}

/** One reply. */
export class OutgoingReply {
  readonly req: IncomingRequest;
  /** Whether another worker has passed the request on. */
  readonly isForwarded: boolean;
  statusCode = 200;
  /** Whether the connection stays open behind this reply. */
  shouldKeepAlive: boolean;
  /** Whether a body without Content-Length is sent in chunks. Otherwise the connection ends with it. */
  mayUseChunks: boolean;
  /** Whether the head has left. */
  headersSent = false;
  /** Whether the last byte has been written. */
  writableEnded = false;
  /** Whether the system has taken the last byte. */
  writableFinished = false;
  /** Whether the reply has left, or its connection is gone. */
  destroyed = false;
  /** How many bytes of the body were written, without chunked framing. */
  bodyBytes = 0;
  /** Why the request failed; null: it did not, or MySQL rejected the statement. */
  failureCode: FailureCode | null = null;
  /** How the path that was asked for renders a failure. */
  renderFailure: RenderFailure = renderPlainFailure;
  /** Null: no statements run for this reply. */
  attended: Attended | null = null;
  readonly #connection: ReplyConnection;
  /** Headers beside those that are sent with the head: name, value, name, value. */
  #added: readonly string[] = [];
  /** A head that waits for the first bytes of its body. */
  #head = '';
  #isChunked = false;
  #whenClosed: (() => void)[] | null = null;

  constructor(request: IncomingRequest, connection: ReplyConnection) {
    this.req = request;
    this.isForwarded = connection.isForwarded;
    this.shouldKeepAlive = mayKeepAlive(request);
    this.mayUseChunks = request.httpVersion === '1.1';
    this.#connection = connection;
  }

  /** Null once the reply is over. */
  get socket(): Socket | null {
    return this.destroyed ? null : this.#connection.socket;
  }

  /** Bytes that wait to be taken by the system. */
  get writableLength(): number {
    return this.destroyed ? 0 : this.#connection.socket.writableLength;
  }

  /** Adds headers, however the reply is sent: name, value, name, value. They are not checked. */
  addHeaders(headers: readonly string[]): void {
    this.#added = this.#added.length === 0 ? headers : [...this.#added, ...headers];
  }

  /** The value of an added header. @param name in lower case */
  addedHeader(name: string): string | undefined {
    const at = this.#added.findIndex(
      (text, index) => index % 2 === 0 && text.toLowerCase() === name,
    );
    return at < 0 ? undefined : this.#added[at + 1];
  }

  /** Forgets the added headers. */
  removeAddedHeaders(): void {
    this.#added = [];
  }

  /** Asks the client for the body (RFC 9110 section 15.2.1). */
  writeContinue(): void {
    if (this.#canWrite) this.#connection.socket.write('HTTP/1.1 100 Continue\r\n\r\n', 'latin1');
  }

  /**
   * Sends a whole reply in one write. Not for HEAD. Throws if a head has left.
   * @param head header lines with their ends, with Content-Length, without Date and Connection; they are not checked
   * @param body one character for each byte
   */
  sendWhole(status: number, head: string, body: string): void {
    if (!this.#canWrite) return;
    this.#beginHead(status);
    this.bodyBytes = body.length;
    const lines = this.#added.length === 0 ? head : head + headerLines(this.#added);
    const text = statusLine(status) + lines + this.#lastLines() + body;
    this.#connection.socket.write(text, 'latin1', this.#left);
    this.writableEnded = true;
  }

  /**
   * Sends the head, with the first bytes of the body. Throws if a head has left.
   * @param headers name, value, name, value; they replace added headers of the same names
   */
  writeHead(status: number, headers: readonly string[] = []): void {
    this.#beginHead(status);
    const names = new Set<string>();
    for (let at = 0; at < headers.length; at += 2) names.add((headers[at] as string).toLowerCase());
    const all = [...headers, ...withoutHeaders(this.#added, names)];
    const hasLength =
      names.has('content-length') || this.addedHeader('content-length') !== undefined;
    if (this.#hasBody && !hasLength) {
      this.#isChunked = this.mayUseChunks;
      if (!this.#isChunked) this.shouldKeepAlive = false;
    }
    const coding = this.#isChunked ? chunkedCoding : '';
    this.#head = statusLine(status) + headerLines(all) + coding + this.#lastLines();
  }

  /**
   * Writes a part of the body.
   * @param sent called when the system has taken it; not if the connection is gone before
   * @returns whether the reader keeps up: if not, wait for `onceDrained`
   */
  write(part: Buffer | string, sent?: () => void): boolean {
    if (!this.#canWrite) return false;
    const { socket } = this.#connection;
    socket.cork();
    this.#writePart(part, sent);
    socket.uncork();
    return socket.writableLength < socket.writableHighWaterMark;
  }

  /** Writes the rest of the body, and ends the reply. */
  end(part: Buffer | string = nothing, sent?: () => void): void {
    if (this.writableEnded || !this.#canWrite) return;
    if (!this.headersSent) {
      this.writeHead(this.statusCode, ['Content-Length', String(Buffer.byteLength(part))]);
    }
    this.writableEnded = true;
    const { socket } = this.#connection;
    socket.cork();
    this.#writePart(part, sent);
    socket.write(this.#isChunked ? lastChunk : '', 'latin1', this.#left);
    socket.uncork();
  }

  /** Calls once when the reader has taken what was written. */
  onceDrained(flows: () => void): void {
    this.#connection.socket.once('drain', flows);
  }

  /** Calls once when the reply has left, or its connection is gone. */
  onceClosed(closed: () => void): void {
    this.#whenClosed ??= [];
    this.#whenClosed.push(closed);
  }

  /** The reply is over. For its connection alone. */
  close(): void {
    this.destroyed = true;
    this.attended?.closed();
    for (const closed of this.#whenClosed ?? []) closed();
  }

  #beginHead(status: number): void {
    if (this.headersSent) throw new Error('a reply has one head');
    this.statusCode = status;
    this.headersSent = true;
  }

  get #canWrite(): boolean {
    return !this.destroyed && this.#connection.socket.writable;
  }

  get #hasBody(): boolean {
    const { statusCode: status } = this;
    return this.req.method !== 'HEAD' && status !== 204 && status !== 304;
  }

  /** The header lines that depend on the connection, and the empty line. */
  #lastLines(): string {
    const lines = this.shouldKeepAlive ? this.#connection.keepAliveLines : connectionCloses;
    return `Date: ${date(Date.now())}\r\n${lines}\r\n`;
  }

  #writePart(part: Buffer | string, sent?: () => void): void {
    const { socket } = this.#connection;
    if (this.#head !== '') socket.write(this.#head, 'latin1');
    this.#head = '';
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    if (bytes.length === 0 || !this.#hasBody) {
      if (sent !== undefined) process.nextTick(sent);
      return;
    }
    this.bodyBytes += bytes.length;
    if (this.#isChunked) socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1');
    socket.write(bytes, sent && ((error) => error ?? sent()));
    if (this.#isChunked) socket.write('\r\n', 'latin1');
  }

  readonly #left = (error?: Error | null): void => {
    if (error || this.destroyed) return;
    this.writableFinished = true;
    this.#connection.replied();
  };
}
