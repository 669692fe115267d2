// A client of /v1/query on one connection, one request at a time. It takes a tenth of the processor that node:http's client takes, so that
// the gateway and its pool are what is scarce.
import { connect, type Socket } from 'node:net';

/** A reply's status, and how long its request waited for a session, in ms. Status 0: the connection was lost. */
export type Asked = { readonly status: number; readonly queueMs: number };

const lost: Asked = { status: 0, queueMs: 0 };
const headEnd = '\r\n\r\n';

/** One connection, which is opened again when it is lost. The signal ends it, and what it waits for. */
export class Asker {
  readonly #port: number;
  readonly #head: string;
  readonly #signal: AbortSignal;
  #socket: Socket | null = null;
  #received = '';
  #answer: (asked: Asked) => void = () => {};

  /** @param token null: the gateway asks for none */
  constructor(port: number, token: string | null, signal: AbortSignal) {
    this.#port = port;
    const authorization = token === null ? '' : `Authorization: Bearer ${token}\r\n`;
    this.#head = `POST /v1/query HTTP/1.1\r\nHost: localhost\r\n${authorization}Content-Type: application/json\r\n`;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#socket?.destroy(), { once: true });
  }

  ask(sql: string): Promise<Asked> {
    if (this.#signal.aborted) return Promise.resolve(lost);
    const body = JSON.stringify({ sql });
    this.#socket ??= this.#open();
    this.#socket.write(`${this.#head}Content-Length: ${Buffer.byteLength(body)}${headEnd}${body}`);
    return new Promise((resolve) => {
      this.#answer = resolve;
    });
  }

  #open(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => this.#read(chunk)).on('error', () => {});
    socket.on('close', () => {
      this.#socket = null;
      this.#received = '';
      this.#answer(lost);
    });
    return socket;
  }

  /** Replies of one row have a Content-Length. */
  #read(chunk: string): void {
    this.#received += chunk;
    const head = this.#received.indexOf(headEnd);
    if (head < 0) return;
    const text = this.#received;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
    if (text.length < head + headEnd.length + length) return;
    this.#received = '';
    const status = Number(text.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
    this.#answer({ status, queueMs: Number(/queue;dur=([\d.]+)/.exec(text)?.[1] ?? 0) });
  }
}
