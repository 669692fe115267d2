// /livez, /readyz, /health and /metrics: what a person, a balancer and a Prometheus ask.
// Must not know how readiness or metrics are found out.
import type { ServerResponse } from 'node:http';
import type { ReadyAnswer } from '../backend/readiness.ts';
import { sendFailure } from '../http/failure.ts';
import type { PlainEndpoint } from '../http/router.ts';

const jsonType = 'application/json; charset=utf-8';
const expositionType = 'text/plain; version=0.0.4; charset=utf-8';

/** The process answers: that is all this says. */
export const livez: PlainEndpoint = (_request, response) => sendText(response, 'ok\n');

/** @param ask whether this worker can serve what a client needs. The server's words stay here: nothing guards this path */
export function createReadyz(ask: () => Promise<ReadyAnswer>): PlainEndpoint {
  return (_request, response) => {
    void ask().then((answer) => {
      if (answer.isReady) {
        sendText(response, JSON.stringify({ ready: true }), jsonType);
        return;
      }
      const { code, errno } = answer;
      response.setHeader('Retry-After', '1');
      sendText(response, JSON.stringify({ ready: false, code, errno }), jsonType, 503);
    });
  };
}

/** DBSlayer's own health check, as readiness. @param ask as for /readyz */
export function createHealth(ask: () => Promise<ReadyAnswer>): PlainEndpoint {
  return (_request, response) => {
    void ask().then(({ isReady }) => {
      const status = isReady ? 200 : 503;
      const text = JSON.stringify({ status: isReady ? 'ok' : 'unavailable' });
      sendText(response, text, jsonType, status);
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
