// Finds who answers a request in a table, once it is known that its sender may ask.
// Must not know what stands in the table, nor how anything is answered.

import type { Config } from '../../shared/config/config.ts';
import { type Failure, type RenderFailure, refusal } from '../failure/failure.ts';
import { readOrigin } from '../http/forward.ts';
import { endWithFault, type OutgoingReply, sendFailure } from '../http/reply.ts';
import {
  announcesBody,
  createHeadReader,
  type IncomingRequest,
  type RequestHead,
} from '../http/request.ts';
import type { RequestHandler } from '../http/server.ts';
import {
  type Endpoint,
  type RecordedHead,
  type RequestObserver,
  RequestRecord,
} from '../observe/observation.ts';
import { parseTraceparent } from '../observe/trace-context.ts';
import { endWithConnection, rulesOf } from './compat.ts';
import { createCors } from './cors.ts';
import {
  createBrowserGuard,
  createHostGuard,
  createPageGuard,
  type Guard,
  type TokenGuard,
} from './guard.ts';

/** Answers a request whose method is one of its route's. The record's id is to be repeated in the reply. */
export type Handler = (
  request: IncomingRequest,
  response: OutgoingReply,
  head: RequestHead,
  record: RequestRecord,
) => void;

/** A line of the table. */
export type Route = {
  /** With a `*` at its end it stands for one more segment, whatever that is. */
  readonly path: string;
  /** What metrics call it. */
  readonly endpoint: Exclude<Endpoint, 'other'>;
  readonly methods: readonly string[];
  /**
   * `open` to those who tell balancers and orchestrators whether we are there: they name us by address, and have no token.
   * Host and browser are looked at for a `page`, which a link of another site may open, and for its `file`s: both hold no
   * data, and need no token. A `driver` sends its token as the password of Basic authentication.
   */
  readonly access: 'guarded' | 'open' | 'page' | 'file' | 'driver';
  /** Whether a client that is one too many is answered. */
  readonly isEssential: boolean;
  /** Replies end with their connection: see `endWithConnection`. */
  readonly endsConnection: boolean;
  readonly handle: Handler;
};

/** Most clients that find no room come again soon; how soon there will be room, nobody knows. */
const tooManyConnections: Failure = {
  ...refusal('TOO_MANY_CONNECTIONS', 'Too many clients are connected. Nothing was executed.'),
  retryAfterSeconds: 1,
};

const nothingHere = refusal(
  'NOT_FOUND',
  'There is nothing here. SQL goes to /v1/query, /v1/batch or /db.',
);

const unknownExpectation = refusal('UNKNOWN_EXPECTATION', 'Only 100-continue is understood.');

/** RFC 7617. */
const basicChallenge = 'Basic realm="dbhttpd", charset="UTF-8"';

const saneRequestId = /^[\w.:/+=@-]{1,128}$/;

/**
 * Creates the handler of all requests. Guards come first, in this order: Host (421), browser (403, preflights too), token
 * (401); then path (404) and method (405).
 */
export function createRouter(
  config: Config,
  routes: readonly Route[],
  tokens: Pick<TokenGuard, 'check' | 'checkBasic'>,
  observer: RequestObserver,
  nextRequestId: () => string,
  failureFormatOf: (path: string) => RenderFailure,
): RequestHandler {
  const checkHost = createHostGuard(config);
  const checkBrowser = createBrowserGuard(config);
  const checkVisitorOfPage = createPageGuard(config);
  const readHead = createHeadReader(rulesOf[config.compat]);
  const routeOf = createRouteFinder(routes);
  const cors = createCors(config.allowOrigins);
  const tokenChecks = {
    guarded: tokens.check,
    driver: tokens.checkBasic,
    open: null,
    page: null,
    file: null,
  } as const satisfies Record<Route['access'], Guard | null>;

  const answer = (
    { request, response, record, route }: Routed,
    head: RequestHead,
    isBeyondLimit: boolean,
  ): void => {
    const { headers, method = '' } = request;
    const { requestId } = record;
    const access = route?.access ?? 'guarded';
    const isOpen = access === 'open';
    const checkOrigin = access === 'page' ? checkVisitorOfPage : checkBrowser;
    const unwelcome = isOpen ? null : (checkHost(head, headers) ?? checkOrigin(head, headers));
    // Browsers ask for leave without a token: that is what they ask for leave to send.
    const leave = unwelcome === null ? (cors?.preflight(method, headers) ?? null) : null;
    if (leave !== null) {
      response.addHeaders(leave);
      response.writeHead(204, ['X-Request-ID', requestId, 'Cache-Control', 'no-store']);
      response.end();
      return;
    }
    const checkToken = tokenChecks[access];
    const refused = unwelcome ?? checkToken?.(head, headers) ?? null;
    if (refused !== null) {
      if (refused.status === 401) {
        response.addHeaders(['WWW-Authenticate', access === 'driver' ? basicChallenge : 'Bearer']);
      }
      refuse(request, response, requestId, refused);
    } else if (isBeyondLimit && route?.isEssential !== true) {
      refuse(request, response, requestId, tooManyConnections);
    } else if (route === undefined) {
      refuse(request, response, requestId, nothingHere);
    } else if (response.expectation === 'unknown') {
      refuse(request, response, requestId, unknownExpectation);
    } else if (!route.methods.includes(method)) {
      refuse(request, response, requestId, otherMethod(route));
    } else {
      route.handle(request, response, head, record);
    }
  };

  return (request, response, isBeyondLimit) => {
    const given = request.headers['x-request-id'];
    const requestId =
      typeof given === 'string' && saneRequestId.test(given) ? given : nextRequestId();
    if (cors !== null) response.addHeaders(cors.headersFor(request.headers.origin));
    const read = readHead(request, response.isForwarded);
    const route = read.ok ? routeOf(read.head.path) : undefined;
    if (route?.endsConnection === true) endWithConnection(request, response);
    const path = read.ok ? read.head.path : withoutQuery(request.url ?? '');
    const endpoint = route?.endpoint ?? 'other';
    response.renderFailure = failureFormatOf(path);
    const trace = parseTraceparent(request.headers.traceparent);
    const origin = response.isForwarded ? readOrigin(request.headers) : null;
    const known: RecordedHead = { requestId, endpoint, path, trace, origin };
    const record = new RequestRecord(request, response, known, observer);
    try {
      if (read.ok) {
        answer({ request, response, record, route }, read.head, isBeyondLimit);
      } else {
        response.shouldKeepAlive = false;
        refuse(request, response, requestId, read.failure);
      }
    } catch (cause) {
      observer.observe({ kind: 'exception', cause, requestId, traceId: record.traceId });
      endWithFault(response, requestId, 'not_executed');
    }
    return record;
  };
}

/** Paths that are whole are looked up, and nothing else is done for them. */
function createRouteFinder(routes: readonly Route[]): (path: string) => Route | undefined {
  const whole = new Map(routes.map((route) => [route.path, route]));
  const families = routes.filter(({ path }) => path.endsWith('/*'));
  const isOf = (path: string, family: string) => {
    const parent = family.slice(0, -1);
    return (
      path.startsWith(parent) && path.length > parent.length && !path.includes('/', parent.length)
    );
  };
  return (path) => whole.get(path) ?? families.find((route) => isOf(path, route.path));
}

/** A request with its line of the table, if there is one. */
type Routed = {
  readonly request: IncomingRequest;
  readonly response: OutgoingReply;
  readonly record: RequestRecord;
  readonly route: Route | undefined;
};

function otherMethod({ path, methods }: Route): Failure {
  const failure = refusal('METHOD_NOT_ALLOWED', `${path} takes ${methods.join(' and ')}.`);
  return { ...failure, allow: methods.join(', ') };
}

function refuse(
  request: IncomingRequest,
  response: OutgoingReply,
  requestId: string,
  failure: Failure,
): void {
  if (announcesBody(request)) response.shouldKeepAlive = false;
  sendFailure(response, failure, requestId);
}

function withoutQuery(target: string): string {
  const mark = target.indexOf('?');
  return mark < 0 ? target : target.slice(0, mark);
}
