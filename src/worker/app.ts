// The path of every request: receive -> admit -> identify -> find its endpoint -> read -> decide -> run or reply -> record.
import { performance } from 'node:perf_hooks';
import { isAllowed } from '../shared/clients/client.ts';
import type { Config } from '../shared/config/config.ts';
import { allAtOnce, longFrom } from '../shared/pieces.ts';
import { jsonType } from './encode/head.ts';
import type {
  Call,
  Decision,
  Need,
  PlainEndpoint,
  Route,
  SqlEndpoint,
} from './endpoints/endpoint.ts';
import { type HeldRequests, passOn } from './endpoints/held-requests.ts';
import { type Failure, forbidden, refusal } from './failure/failure.ts';
import { endWithFault, sendFailure, sendText } from './http/failure-reply.ts';
import { readOrigin } from './http/forward.ts';
import { createHeadReader, hasSeveralCredentials, type RequestHead } from './http/head.ts';
import type { OutgoingReply } from './http/reply.ts';
import { announcesBody, type IncomingRequest, readBody } from './http/request.ts';
import { createNotFound } from './not-found.ts';
import { type RequestObserver, RequestRecord } from './observe/observation.ts';
import { parseTraceparent } from './observe/trace-context.ts';
import { ArrivalOrder, findNamed } from './request/arrival-order.ts';
import { endWithConnection, rulesOf } from './request/compat.ts';
import { createCors } from './request/cors.ts';
import { parseBasic } from './request/credentials.ts';
import { startExchange } from './request/exchange.ts';
import { challenges, createAdmission, schemes } from './request/guard.ts';
import {
  type Identified,
  type Identify,
  refuseCredentials,
  type Scheme,
} from './request/identify.ts';
import type { LongWork } from './request/long-work.ts';
import { claimsHeader, stateClaims } from './request/stated-claims.ts';
import { accessElsewhere, createRouteFinder, failureFormatOf } from './routes.ts';

/** The parts of the path of a request. */
export type AppParts = {
  /** The instance's. */
  readonly config: Config;
  readonly routes: readonly Route[];
  readonly identify: Identify;
  readonly observer: RequestObserver;
  readonly nextRequestId: () => string;
  readonly longWork: LongWork;
  readonly held: HeldRequests;
};

/** One request whose head is sound. */
type Received = {
  readonly request: IncomingRequest;
  readonly response: OutgoingReply;
  readonly record: RequestRecord;
  readonly head: RequestHead;
};

const tooManyConnections: Failure = {
  ...refusal('TOO_MANY_CONNECTIONS', 'Too many clients are connected. Nothing was executed.'),
  retryAfterSeconds: 1,
};
const tooManyBytes: Failure = {
  ...refusal('TOO_MANY_BYTES', 'Too many long requests wait to be decoded. Nothing was executed.'),
  retryAfterSeconds: 1,
};
const unknownExpectation = refusal(
  'UNKNOWN_EXPECTATION',
  'The only supported Expect is 100-continue.',
);
const otherType = refusal(
  'UNSUPPORTED_MEDIA_TYPE',
  'The body must be application/json (with curl: --json).',
);

const saneRequestId = /^[\w.:/+=@-]{1,128}$/;
/** RFC 8259. */
const jsonContentType = /^application\/json[ \t]*(;.*)?$/i;
const noBody = Buffer.alloc(0);

/** Answers requests. */
export class App {
  readonly #parts: AppParts;
  /** Whether several clients are configured. */
  readonly #hasClients: boolean;
  readonly #readHead;
  readonly #routeOf;
  readonly #notFound;
  readonly #admit;
  readonly #cors;
  readonly #order = new ArrivalOrder();

  constructor(parts: AppParts) {
    const { config, routes } = parts;
    this.#parts = parts;
    this.#hasClients = config.clients !== null;
    const checksCredentials = !this.#hasClients;
    this.#readHead = createHeadReader({ ...rulesOf[config.compat], checksCredentials });
    this.#routeOf = createRouteFinder(routes);
    this.#notFound = createNotFound(routes);
    this.#admit = createAdmission(config);
    this.#cors = createCors(config.allowOrigins);
  }

  /** Receives a request and begins its record. @param isBeyondLimit its client is one too many */
  receive(
    request: IncomingRequest,
    response: OutgoingReply,
    isBeyondLimit: boolean,
  ): RequestRecord {
    if (this.#cors !== null) response.addHeaders(this.#cors.headersFor(request.headers.origin));
    const read = this.#readHead(request, response.isForwarded);
    const path = read.ok ? read.head.path : withoutQuery(request.url ?? '');
    const route = read.ok ? this.#routeOf(path) : undefined;
    if (route?.endsConnection === true) endWithConnection(request, response);
    response.renderFailure = failureFormatOf(path);
    const record = this.#beginRecord(request, response, path, route);
    try {
      if (!read.ok) reject(request, response, record, read.failure, true);
      else this.#route({ request, response, record, head: read.head }, route, isBeyondLimit);
    } catch (cause) {
      this.#endFaulted(response, record, cause);
    }
    return record;
  }

  #beginRecord(
    request: IncomingRequest,
    response: OutgoingReply,
    path: string,
    route: Route | undefined,
  ): RequestRecord {
    const { observer, nextRequestId } = this.#parts;
    const given = request.headers['x-request-id'];
    const isSane = typeof given === 'string' && saneRequestId.test(given);
    const head = {
      requestId: isSane ? given : nextRequestId(),
      endpoint: route?.name ?? 'other',
      path,
      trace: parseTraceparent(request.headers.traceparent),
      origin: response.isForwarded ? readOrigin(request.headers) : null,
    } as const;
    return new RequestRecord(request, response, head, observer);
  }

  /** Guards come first (421, 403, preflights), then the credentials (401). */
  #route(received: Received, route: Route | undefined, isBeyondLimit: boolean): void {
    const { request, response, record, head } = received;
    const access = route?.access ?? accessElsewhere(head.path);
    const admission = this.#admit(head, request, access);
    if (admission.kind === 'refused') {
      reject(request, response, record, admission.failure);
      return;
    }
    if (admission.kind === 'preflight') {
      response.addHeaders(admission.headers);
      response.writeHead(204, ['X-Request-ID', record.requestId, 'Cache-Control', 'no-store']);
      response.end();
      return;
    }
    const scheme = schemes[access];
    if (scheme === null) {
      this.#enter(received, route, isBeyondLimit);
      return;
    }
    const identified = this.#identify(request, scheme);
    if (identified instanceof Promise) {
      void this.#admitLater(received, route, isBeyondLimit, scheme, identified);
    } else {
      this.#admitCaller(received, route, isBeyondLimit, scheme, identified);
    }
  }

  #identify(request: IncomingRequest, scheme: Scheme): Identified | Promise<Identified> {
    if (this.#hasClients && hasSeveralCredentials(request)) return refuseCredentials(scheme);
    return this.#parts.identify(request.headers, scheme);
  }

  /** The same for a caller whose JSON Web Token is verified first. The body waits in the socket. */
  async #admitLater(
    received: Received,
    route: Route | undefined,
    isBeyondLimit: boolean,
    scheme: Scheme,
    identifying: Promise<Identified>,
  ): Promise<void> {
    const { response, record } = received;
    try {
      const identified = await identifying;
      if (response.destroyed || response.headersSent) return;
      this.#admitCaller(received, route, isBeyondLimit, scheme, identified);
    } catch (cause) {
      this.#endFaulted(response, record, cause);
    }
  }

  #admitCaller(
    received: Received,
    route: Route | undefined,
    isBeyondLimit: boolean,
    scheme: Scheme,
    identified: Identified,
  ): void {
    const { request, response, record, head } = received;
    if (!identified.ok) {
      const failure = this.#explainRefusal(identified.failure, head, route);
      if (failure.code === 'UNAUTHORIZED') {
        response.addHeaders(['WWW-Authenticate', route?.challenge ?? challenges[scheme]]);
      }
      reject(request, response, record, failure);
      return;
    }
    const header = request.headers[claimsHeader];
    const stated =
      header === undefined ? identified : stateClaims(identified.caller, String(header));
    if (!stated.ok) {
      reject(request, response, record, stated.failure);
      return;
    }
    record.identified = stated.caller;
    this.#enter(received, route, isBeyondLimit);
  }

  /** After the credentials come the path (404), the method (405) and the permission (403). */
  #enter(received: Received, route: Route | undefined, isBeyondLimit: boolean): void {
    const { request, response, record, head } = received;
    const failure =
      isBeyondLimit && route?.isEssential !== true
        ? tooManyConnections
        : whyNotAnswered(request, route, record);
    if (failure !== null || route === undefined) {
      reject(request, response, record, failure ?? this.#notFound.of(head.path));
      return;
    }
    const { access, endpoint } = route;
    // The user's name is for the logs: the token alone says what it may do.
    if (access === 'driver')
      record.driverUser = parseBasic(request.headers.authorization)?.user ?? null;
    if (endpoint.kind === 'sql') this.#read(received, endpoint);
    else if (request.complete) endpoint.handle(request, response, head, record);
    else this.#handleLater(received, endpoint);
  }

  /** Has an endpoint that takes no body answer when the body has come and was found well-formed. */
  #handleLater({ request, response, record, head }: Received, { handle }: PlainEndpoint): void {
    readBody(request, response, this.#parts.config.maxRequestBytes, {
      complete: () => {
        try {
          handle(request, response, head, record);
        } catch (cause) {
          this.#endFaulted(response, record, cause);
        }
      },
      failed: (reason) => reject(request, response, record, reason, true),
    });
  }

  #explainRefusal(failure: Failure, { path }: RequestHead, route: Route | undefined): Failure {
    const isToken = failure.code === 'UNAUTHORIZED' && route === undefined;
    return isToken ? this.#notFound.ofUnauthorized(path, failure) : failure;
  }

  /** Reads the body, if the request has one that counts. */
  #read(received: Received, endpoint: SqlEndpoint): void {
    const { request, response, record, head } = received;
    const source = endpoint.sourceOf?.(request, head) ?? 'json';
    const isOtherType = source === 'json' && !isJson(request);
    const failure = endpoint.check(request) ?? (isOtherType ? otherType : null);
    if (failure !== null) reject(request, response, record, failure, true);
    else if (source === 'url') this.#decide(received, endpoint, null);
    else {
      readBody(request, response, this.#parts.config.maxRequestBytes, {
        complete: (body) => this.#decide(received, endpoint, source === 'json' ? body : null),
        failed: (reason) => reject(request, response, record, reason, true),
      });
    }
  }

  /**
   * Has the endpoint decide what is done, and does it: at once, or for a text of more than 64 KiB in pieces, so that other requests run
   * in between. An exception ends this request alone. Nothing was executed then: an exchange handles its own exceptions.
   * @param body null: the URL says what is asked for
   */
  #decide(received: Received, endpoint: SqlEndpoint, body: Buffer | null): void {
    const { request, response, record, head } = received;
    const { length } = body ?? head.query ?? '';
    const isLong = length > longFrom;
    const call: Call = { request, response, record, head, body: body ?? noBody, isLong };
    const { longWork } = this.#parts;
    if (isLong && !longWork.hasRoomFor(length)) {
      reject(request, response, record, tooManyBytes, false);
      return;
    }
    try {
      const deciding = endpoint.decide(call);
      if (!isLong) {
        this.#carryOutBehind(allAtOnce(deciding), call);
        return;
      }
      const decided = longWork.do(deciding, length);
      void this.#carryOutInOrder(findNamed(call.body), decided, call);
    } catch (cause) {
      this.#endFaulted(response, record, cause);
    }
  }

  /** Carries a short request out: at once, unless it names the same transaction as a request before it that is not carried out yet. */
  #carryOutBehind(decision: Decision, call: Call): void {
    const token = transactionOf(decision);
    if (this.#order.before(token, null).length === 0) void this.#carryOut(decision, call);
    else void this.#carryOutInOrder(new Set([token]), Promise.resolve(decision), call);
  }

  /** @param named the transactions that it may name */
  async #carryOutInOrder(
    named: ReadonlySet<string>,
    decided: Promise<Decision>,
    call: Call,
  ): Promise<void> {
    const { response, record } = call;
    const from = performance.now();
    const arrival = this.#order.enter(named);
    try {
      const decision = await decided;
      const earlier = this.#order.before(transactionOf(decision), arrival);
      await Promise.all(earlier.map(({ left }) => left));
      record.workedMs = performance.now() - from;
      if (!response.destroyed) await this.#carryOut(decision, call);
    } catch (cause) {
      this.#endFaulted(response, record, cause);
    } finally {
      arrival.leave();
    }
  }

  /** Runs statements, replies, or passes the request on. A promise resolves when the request is with the other worker, before any later one. */
  #carryOut(decision: Decision, call: Call): Promise<void> | null {
    const { response, record } = call;
    if (!decision.ok) {
      sendFailure(response, decision.failure, record.requestId);
      return null;
    }
    switch (decision.kind) {
      case 'run':
        startExchange(decision, response, record);
        return null;
      case 'reply':
        response.addHeaders(['X-Request-ID', record.requestId, ...(decision.headers ?? [])]);
        sendText(response, decision.json, jsonType);
        return null;
      case 'own reply':
        return decision
          .begin()
          .catch((cause: unknown) => this.#endFaulted(response, record, cause));
      case 'pass on':
        return passOn(this.#parts.held, decision, call, (next) => void this.#carryOut(next, call));
      default:
        return decision satisfies never;
    }
  }

  #endFaulted(response: OutgoingReply, record: RequestRecord, cause: unknown): void {
    this.#parts.observer.observe({ kind: 'exception', cause, record });
    endWithFault(response, record.requestId, 'not_executed');
  }
}

/** The token of the transaction that a request is part of; '' if it is part of none. */
function transactionOf(decision: Decision): string {
  const mayBePart = decision.ok && (decision.kind === 'run' || decision.kind === 'pass on');
  return (mayBePart && decision.transaction) || '';
}

/** Null: it is answered, if there is a route. */
function whyNotAnswered(
  { method, expectation }: IncomingRequest,
  route: Route | undefined,
  record: RequestRecord,
): Failure | null {
  if (route === undefined) return null;
  if (expectation === 'unknown') return unknownExpectation;
  const { path, methods, needs } = route;
  if (methods.includes(method)) return whyForbidden(needs, record);
  const failure = refusal('METHOD_NOT_ALLOWED', `${path} takes ${methods.join(' and ')}.`);
  return { ...failure, allow: methods.join(', ') };
}

function whyForbidden(needs: Need, { caller }: RequestRecord): Failure | null {
  const isOpen = needs === 'nothing' || needs === 'any client';
  return isOpen || isAllowed(caller.client, needs) ? null : forbidden(needs);
}

/** Answers with a failure. A connection on which the rest of a request may come is not used again. */
function reject(
  request: IncomingRequest,
  response: OutgoingReply,
  { requestId }: RequestRecord,
  failure: Failure,
  endsConnection = announcesBody(request),
): void {
  if (endsConnection) response.shouldKeepAlive = false;
  sendFailure(response, failure, requestId);
}

function isJson({ headers }: IncomingRequest): boolean {
  return jsonContentType.test(headers['content-type'] ?? '');
}

function withoutQuery(target: string): string {
  const mark = target.indexOf('?');
  return mark < 0 ? target : target.slice(0, mark);
}
