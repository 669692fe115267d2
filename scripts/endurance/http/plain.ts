// A connection that asks the gateway for one request after the other in plain form.
import { connect, type Socket } from 'node:net';
import { type Reply, readReplies } from './replies.ts';

/** Sends requests one at a time. A connection that has ended is opened again. */
export class PlainClient {
  readonly #port: number;
  #socket: Socket | null = null;
  #text = '';
  #isHead = false;
  #done: ((text: string) => void) | null = null;

  constructor(port: number) {
    this.#port = port;
  }

  /** Resolves to the reply; null: the connection ended without a whole one. */
  async ask(request: string): Promise<Reply | null> {
    this.#text = '';
    this.#isHead = request.startsWith('HEAD ');
    const socket = this.#socket ?? this.#open();
    const text = await new Promise<string>((resolve) => {
      this.#done = resolve;
      socket.write(Buffer.from(request, 'latin1'));
    });
    const reply = readReplies(text)?.at(-1) ?? null;
    if (reply?.closes !== false) this.close();
    return reply;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }

  #open(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString('latin1');
      if (this.#isWhole()) this.#finish();
    });
    socket.on('error', () => {});
    socket.once('close', () => {
      if (this.#socket === socket) this.#socket = null;
      this.#finish();
    });
    return socket;
  }

  #isWhole(): boolean {
    const reply = readReplies(this.#text)?.[0];
    if (reply === undefined) return false;
    return this.#isHead || reply.body !== '' || reply.header('content-length') === '0';
  }

  #finish(): void {
    const done = this.#done;
    this.#done = null;
    done?.(this.#text);
  }
}
