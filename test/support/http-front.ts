// A front between a client and a gateway: passes requests on, answers in the gateway's place, or cuts replies.
import { createServer, type IncomingHttpHeaders, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Something to do with one request instead of passing it on. */
export type Deed =
  /** The front answers. The gateway does not get the request. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body: string;
      /** The answer ends after this many bytes of its body. */
      readonly cutAfter?: number;
    }
  /** The connection ends without a reply; `asked`: after the gateway has answered. */
  | { readonly kind: 'drop'; readonly when: 'at once' | 'asked' }
  /** The same at once, with RST. */
  | { readonly kind: 'reset' }
  /** The gateway's reply ends after this many bytes of its body, as if the line were lost. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** Passed on only when `release` is called. */
  | { readonly kind: 'hold' };

/** A request that has come. */
export type Seen = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

/** A front that was started; its owner must stop it. */
export type HttpFront = {
  readonly url: string;
  /** The requests so far, in their order. */
  readonly seen: readonly Seen[];
  /** The statuses of the gateway's replies, in this order. */
  readonly passed: readonly number[];
  /** The next requests meet these, one each; those after them are passed on. */
  readonly next: (...deeds: readonly Deed[]) => void;
  readonly release: () => void;
  readonly stop: () => Promise<void>;
};

/** Starts a front of the gateway at `target`, on loopback. */
export async function startHttpFront(target: string): Promise<HttpFront> {
  const seen: Seen[] = [];
  const passed: number[] = [];
  const deeds: Deed[] = [];
  const held: (() => void)[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.once('end', () => {
      const body = Buffer.concat(chunks);
      const path = incoming.url ?? '/';
      seen.push({ path, headers: incoming.headers, body: body.toString() });
      const deed = deeds.shift();
      const pass = () => passOn(incoming.headers, path, body, deed, response);
      if (deed?.kind === 'hold') held.push(pass);
      else if (deed?.kind === 'answer') answer(response, deed);
      else if (deed?.kind === 'reset') incoming.socket.resetAndDestroy();
      else if (deed?.kind === 'drop' && deed.when === 'at once') response.destroy();
      else pass();
    });
  });
  const passOn = (
    headers: IncomingHttpHeaders,
    path: string,
    body: Buffer,
    deed: Deed | undefined,
    response: ServerResponse,
  ) => {
    const { host: _host, ...rest } = headers;
    const onward = request(new URL(path, target), { method: 'POST', headers: rest, agent: false });
    onward.once('error', () => response.destroy());
    onward.once('response', (reply) => {
      const chunks: Buffer[] = [];
      reply.on('data', (chunk: Buffer) => chunks.push(chunk));
      reply.once('error', () => response.destroy());
      reply.once('end', () => {
        const whole = Buffer.concat(chunks);
        passed.push(reply.statusCode ?? 0);
        if (deed?.kind === 'drop') {
          response.destroy();
          return;
        }
        response.writeHead(reply.statusCode ?? 502, withoutConnection(reply.rawHeaders));
        if (deed?.kind !== 'cut') response.end(whole);
        else response.write(whole.subarray(0, deed.afterBytes), () => response.destroy());
      });
    });
    onward.end(body);
  };
  // Only a deed ends a connection. After node's five seconds a client could send on a connection that just closes.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    passed,
    next: (...more) => deeds.push(...more),
    release: () => {
      for (const pass of held.splice(0)) pass();
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Names, spelt as the gateway spells them, and values in turn. The connection to the client is the front's own. */
function withoutConnection(headers: readonly string[]): string[] {
  const isOfConnection = (at: number) => headers[at - (at % 2)]?.toLowerCase() === 'connection';
  return headers.filter((_, at) => !isOfConnection(at));
}

function answer(
  response: ServerResponse,
  { status, headers, body, cutAfter }: Extract<Deed, { kind: 'answer' }>,
): void {
  const length = { 'Content-Length': Buffer.byteLength(body) };
  response.writeHead(status, { ...headers, ...length });
  if (cutAfter === undefined) response.end(body);
  else response.write(Buffer.from(body).subarray(0, cutAfter), () => response.destroy());
}
