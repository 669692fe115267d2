// /livez, /readyz, /health and /metrics: what a person, a balancer and a Prometheus ask.
// Must not know how readiness or metrics are found out.
import type { ServerResponse } from 'node:http';
import { sendFailure } from './failure.ts';
import type { PlainEndpoint } from './routes.ts';

const expositionType = 'text/plain; version=0.0.4; charset=utf-8';

/** The process answers: that is all this says. */
export const livez: PlainEndpoint = (_request, response) => sendText(response, 'ok\n');

/** @param isReady whether this worker can serve what a client needs */
export function createReadyz(isReady: () => Promise<boolean>): PlainEndpoint {
  return (_request, response) => {
    void isReady().then((ready) => {
      if (ready) {
        sendText(response, 'ready\n');
        return;
      }
      sendFailure(response, {
        status: 503,
        code: 'NOT_READY',
        message: 'The database does not serve, or the gateway is stopping.',
        outcome: 'not_executed',
        retryAfterSeconds: 1,
      });
    });
  };
}

/** DBSlayer's own health check, as readiness. @param isReady as for /readyz */
export function createHealth(isReady: () => Promise<boolean>): PlainEndpoint {
  return (_request, response) => {
    void isReady().then((ready) => {
      const status = ready ? 200 : 503;
      const text = JSON.stringify({ status: ready ? 'ok' : 'unavailable' });
      sendText(response, text, 'application/json; charset=utf-8', status);
    });
  };
}

/** @param scrape the metrics of all workers as Prometheus text */
export function createMetrics(scrape: () => Promise<string>): PlainEndpoint {
  return (_request, response) => {
    scrape().then(
      (text) => sendText(response, text, expositionType),
      () =>
        sendFailure(response, {
          status: 503,
          code: 'NO_METRICS',
          message: 'The supervisor did not answer in time.',
          outcome: 'not_executed',
          retryAfterSeconds: 1,
        }),
    );
  };
}

function sendText(
  response: ServerResponse,
  text: string,
  contentType = 'text/plain; charset=utf-8',
  status = 200,
): void {
  response.setHeader('Content-Type', contentType);
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.writeHead(status);
  response.end(text);
}
