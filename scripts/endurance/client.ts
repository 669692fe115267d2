// One client of the gateway: sends requests, keeps its connection or closes it, and reports how each request ended.

import { openRaw, type RawConnection } from '../../test/support/http.ts';
import { HttpReplyError } from '../../test/support/http-error.ts';

/** How a request ended. `received` counts the bytes of an incomplete reply. */
export type Ending =
  | { readonly kind: 'reply'; readonly status: number; readonly body: Buffer }
  | { readonly kind: 'refused'; readonly detail: string }
  | { readonly kind: 'cut'; readonly detail: string; readonly received: number };

/** The options of a request. */
export type Manner = { readonly requestId?: string; readonly closes?: boolean };

/** The bytes of a GET of /db. */
export function composeQuery(request: object, { requestId, closes = false }: Manner = {}): string {
  const lines = [
    `GET /db?${encodeURIComponent(JSON.stringify(request))} HTTP/1.1`,
    'Host: localhost',
    ...(requestId === undefined ? [] : [`X-Request-ID: ${requestId}`]),
    ...(closes ? ['Connection: close'] : []),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** Opens a connection. A failure is an ending. */
export async function open(port: number): Promise<RawConnection | (Ending & { kind: 'refused' })> {
  try {
    return await openRaw(port, { tellsResets: false });
  } catch (error) {
    return { kind: 'refused', detail: (error as NodeJS.ErrnoException).code ?? String(error) };
  }
}

/** Reads the answer of a request that was sent. */
export async function readEnding(connection: RawConnection): Promise<Ending> {
  try {
    const { status, body } = await connection.reply();
    return { kind: 'reply', status, body };
  } catch (error) {
    if (!(error instanceof HttpReplyError)) throw error;
    return { kind: 'cut', detail: error.message, received: error.received.length };
  }
}

/** Sends one request after the other, each on a new connection, or all on one that it opens again when it has ended. */
export class Client {
  readonly #port: number;
  readonly #keepsAlive: boolean;
  #connection: RawConnection | null = null;
  #localPort = 0;
  #refusal = '';

  constructor(port: number, keepsAlive: boolean) {
    this.#port = port;
    this.#keepsAlive = keepsAlive;
  }

  /** The port at this end of the latest connection; 0 before the first. */
  get localPort(): number {
    return this.#localPort;
  }

  async ask(request: object, manner: Manner = {}): Promise<Ending> {
    this.#connection ??= await this.#connect();
    const connection = this.#connection;
    if (connection === null) return { kind: 'refused', detail: this.#refusal };
    connection.send(composeQuery(request, { ...manner, closes: !this.#keepsAlive }));
    const ending = await readEnding(connection);
    if (!this.#keepsAlive || ending.kind === 'cut') this.close();
    return ending;
  }

  close(): void {
    this.#connection?.close();
    this.#connection = null;
  }

  async #connect(): Promise<RawConnection | null> {
    const opened = await open(this.#port);
    if ('kind' in opened) {
      this.#refusal = opened.detail;
      return null;
    }
    this.#localPort = opened.socket.localPort ?? 0;
    const forget = () => {
      if (this.#connection !== opened) return;
      this.#connection = null;
      opened.socket.destroy();
    };
    opened.socket.once('end', forget).once('close', forget);
    return opened;
  }
}
