// Which path is answered by whom, and who may ask.
// Must not know how any of them answers.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Config } from '../../shared/settings/config.ts';
import type { DbEndpoint } from '../endpoints/db/endpoint.ts';
import { type Endpoint, type RequestObserver, RequestRecord } from '../observe/request-record.ts';
import { announcesBody } from './body-announcement.ts';
import { endWithConnection, rulesOf } from './compat.ts';
import { createCors } from './cors.ts';
import { type Failure, refusal, sendFailure } from './failure.ts';
import { createBrowserGuard, createHostGuard, type Guard } from './guard.ts';
import { endWithFault } from './internal-fault.ts';
import type { OutgoingReply } from './outgoing-reply.ts';
import { createHeadReader, type HeadResult, type RequestHead } from './request-head.ts';
import type { RequestHandler } from './server.ts';

/** Answers a request that has no body and needs no SQL. */
export type PlainEndpoint = (request: IncomingMessage, response: OutgoingReply) => void;

export type Endpoints = {
  readonly db: DbEndpoint;
  readonly livez: PlainEndpoint;
  readonly readyz: PlainEndpoint;
  readonly health: PlainEndpoint;
  readonly metrics: PlainEndpoint;
};

const paths: readonly (readonly [path: string, endpoint: Endpoint])[] = [
  ['/db', 'db'],
  ['/db/', 'db'],
  ['/livez', 'livez'],
  ['/readyz', 'readyz'],
  ['/metrics', 'metrics'],
];

/** Those that tell balancers and orchestrators whether we are there: they name us by address, and have no token. */
const isOpen: ReadonlySet<Endpoint> = new Set(['livez', 'readyz', 'health']);

/** Most clients that find no room come again soon; how soon there will be room, nobody knows. */
const tooManyConnections: Failure = {
  ...refusal(503, 'TOO_MANY_CONNECTIONS', 'Too many clients are connected. Nothing was executed.'),
  retryAfterSeconds: 1,
};

const nothingHere = refusal(404, 'NOT_FOUND', 'There is nothing here. SQL goes to /db.');

const unknownExpectation = refusal(417, 'EXPECTATION_FAILED', 'Only 100-continue is understood.');

const saneRequestId = /^[\w.:/+=@-]{1,128}$/;

/** Creates the handler of all requests. */
export function createRoutes(
  config: Config,
  endpoints: Endpoints,
  checkToken: Guard,
  observer: RequestObserver,
  nextRequestId: () => string,
): RequestHandler {
  const checkHost = createHostGuard(config);
  const checkBrowser = createBrowserGuard(config);
  const rules = rulesOf[config.compat];
  const readHead = createHeadReader(rules);
  const endpointOf = new Map(rules.hasHealth ? [...paths, ['/health', 'health'] as const] : paths);

  const cors = createCors(config.allowOrigins);

  /** Which name they call us by, and which page is behind them. */
  const checkCaller = (
    head: RequestHead,
    headers: IncomingHttpHeaders,
    endpoint: Endpoint,
  ): Failure | null =>
    isOpen.has(endpoint) ? null : (checkHost(head, headers) ?? checkBrowser(head, headers));

  const answer = (
    request: IncomingMessage,
    response: OutgoingReply,
    read: HeadResult,
    record: RequestRecord,
    isBeyondLimit: boolean,
  ): void => {
    const { requestId, endpoint } = record.head;
    if (!read.ok) {
      response.shouldKeepAlive = false;
      refuse(request, response, requestId, read.failure);
      return;
    }
    const { head } = read;
    const { headers, method } = request;
    const unwelcome = checkCaller(head, headers, endpoint);
    // Browsers ask for leave without a token: that is what they ask for leave to send.
    const leave = unwelcome === null ? (cors?.preflight(method, headers) ?? null) : null;
    if (leave !== null) {
      response.addHeaders(leave);
      response.writeHead(204, ['X-Request-ID', requestId, 'Cache-Control', 'no-store']);
      response.end();
      return;
    }
    const refused = unwelcome ?? (isOpen.has(endpoint) ? null : checkToken(head, headers));
    if (refused !== null) {
      if (refused.status === 401) response.addHeaders(['WWW-Authenticate', 'Bearer']);
      refuse(request, response, requestId, refused);
    } else if (isBeyondLimit && (endpoint === 'db' || endpoint === 'other')) {
      refuse(request, response, requestId, tooManyConnections);
    } else if (response.expectation === 'unknown' && endpoint !== 'other') {
      refuse(request, response, requestId, unknownExpectation);
    } else if (endpoint === 'db') {
      endpoints.db(request, response, head, record);
    } else if (endpoint === 'other') {
      refuse(request, response, requestId, nothingHere);
    } else if (request.method !== 'GET' && request.method !== 'HEAD') {
      const failure = refusal(405, 'METHOD_NOT_ALLOWED', `${head.path} takes GET.`);
      refuse(request, response, requestId, { ...failure, allow: 'GET, HEAD' });
    } else {
      response.shouldKeepAlive = false;
      response.setHeader('X-Request-ID', requestId);
      endpoints[endpoint](request, response);
    }
  };

  return (request, response, isBeyondLimit) => {
    const given = request.headers['x-request-id'];
    const requestId =
      typeof given === 'string' && saneRequestId.test(given) ? given : nextRequestId();
    if (cors !== null) response.addHeaders(cors.headersFor(request.headers.origin));
    const read = readHead(request);
    const endpoint = (read.ok ? endpointOf.get(read.head.path) : undefined) ?? 'other';
    if (rules.repliesEndConnection && endpoint === 'db') endWithConnection(request, response);
    const path = read.ok ? read.head.path : withoutQuery(request.url ?? '');
    const record = new RequestRecord(request, response, { requestId, endpoint, path }, observer);
    try {
      answer(request, response, read, record, isBeyondLimit);
    } catch (cause) {
      observer.faulted(cause, requestId);
      endWithFault(response, requestId, 'not_executed');
    }
    return record;
  };
}

function refuse(
  request: IncomingMessage,
  response: OutgoingReply,
  requestId: string,
  failure: Failure,
): void {
  if (announcesBody(request)) response.shouldKeepAlive = false;
  sendFailure(response, failure, ['X-Request-ID', requestId]);
}

function withoutQuery(target: string): string {
  const mark = target.indexOf('?');
  return mark < 0 ? target : target.slice(0, mark);
}
