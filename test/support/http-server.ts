// The gateway's HTTP server in this process, with a handler of the test's.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { strictHeads } from '../../src/worker/http/head-form.ts';
import { clientTimeouts } from '../../src/worker/http/limits.ts';
import { Peers } from '../../src/worker/http/peers.ts';
import {
  HttpServer,
  type HttpSettings,
  type RequestHandler,
} from '../../src/worker/http/server.ts';

/** Answers a request, without a log. */
export type Handle = (...request: Parameters<RequestHandler>) => void;

/** A server that listens; the caller must end it. */
export type Served = {
  readonly http: HttpServer;
  readonly port: number;
  readonly end: () => void;
};

const usual: HttpSettings = {
  maxUrlBytes: 1_000_000,
  heads: strictHeads,
  maxBufferedBytes: 64 * 1024 ** 2,
  keepaliveTimeoutMs: 60_000,
  connections: { served: 2_000, reserved: 16 },
  timeouts: clientTimeouts,
  peers: new Peers(clientTimeouts),
  tls: null,
};

/** Serves on a port of its own. */
export async function serveHttp(
  handle: Handle,
  settings: Partial<HttpSettings> = {},
): Promise<Served> {
  const http = new HttpServer({ ...usual, ...settings }, (...request) => {
    handle(...request);
    return { requestId: 'none', closed: () => {} };
  });
  http.server.listen(0, '127.0.0.1', 4096);
  await once(http.server, 'listening');
  const end = () => {
    http.destroyConnections();
    http.server.close();
  };
  return { http, port: (http.server.address() as AddressInfo).port, end };
}
