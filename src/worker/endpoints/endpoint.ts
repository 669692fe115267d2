// Types of endpoints: a line of the table of routes, and the decisions on a request.
import type { Permission } from '../../shared/clients/client.ts';
import type { Pieces } from '../../shared/pieces.ts';
import type { Ending } from '../../shared/process/commit-endings.ts';
import type { TransactionOver } from '../execution/transaction-end.ts';
import type { Found } from '../execution/transactions/open-transactions.ts';
import type { Failure, Refused } from '../failure/failure.ts';
import type { RequestHead } from '../http/head.ts';
import type { OutgoingReply } from '../http/reply.ts';
import type { IncomingRequest } from '../http/request.ts';
import type { Endpoint as EndpointName, RequestRecord } from '../observe/observation.ts';
import type { RunDecision } from '../request/exchange.ts';
import type { Access } from '../request/guard.ts';

/** The caller that a request to a path needs: a client with a permission, any client, or none. Endpoints check what depends on more. */
export type Need = Permission | 'any client' | 'nothing';

/** A line of the table of routes. */
export type Route = {
  /** A `*` at its end matches any one segment. */
  readonly path: string;
  /** Its name in metrics. */
  readonly name: Exclude<EndpointName, 'other'>;
  readonly methods: readonly string[];
  readonly access: Access;
  readonly needs: Need;
  /** Whether it answers also if too many clients are connected. */
  readonly isEssential: boolean;
  /** Replies end with their connection: see `endWithConnection`. */
  readonly endsConnection: boolean;
  /** The WWW-Authenticate of its 401; missing: that of its kind of access. */
  readonly challenge?: string;
  readonly endpoint: Endpoint;
};

/** The endpoint of a path. */
export type Endpoint = PlainEndpoint | SqlEndpoint;

/** Answers by itself, without a body and without SQL. */
export type PlainEndpoint = { readonly kind: 'plain'; readonly handle: Handler };

/** The record's id must be in the reply. */
export type Handler = (
  request: IncomingRequest,
  response: OutgoingReply,
  head: RequestHead,
  record: RequestRecord,
) => void;

/** Decides on requests that may run SQL. */
export type SqlEndpoint = {
  readonly kind: 'sql';
  /** Refuses a request because of its head, before its body is read; null: it does not. */
  readonly check: (request: IncomingRequest) => Failure | null;
  /** Missing: the body, which must be JSON. */
  readonly sourceOf?: (request: IncomingRequest, head: RequestHead) => Source;
  /** Decides what is done with a request. Pure. */
  readonly decide: (call: Call) => Pieces<Decision>;
};

/** The part of a request that says what it asks for: a body of JSON, or the URL. `ignored body`: the URL, and the body is read and ignored. */
export type Source = 'json' | 'url' | 'ignored body';

/** One request, read to its end. */
export type Call = {
  readonly request: IncomingRequest;
  readonly response: OutgoingReply;
  readonly record: RequestRecord;
  readonly head: RequestHead;
  /** Empty if the URL says what is asked for. */
  readonly body: Buffer;
  /** It is decided in pieces. */
  readonly isLong: boolean;
};

/** The decision on a request: statements run, a text is its reply, another worker gets it, the endpoint answers later, or it fails. */
export type Decision = Refused | RunDecision | Reply | PassOn | OwnReply;

/** A JSON text that is the whole reply. */
export type Reply = {
  readonly ok: true;
  readonly kind: 'reply';
  readonly json: string;
  /** Further headers: name, value, name, value. */
  readonly headers?: readonly string[];
};

/** The endpoint sends the reply by itself, and may run statements before. @see startExchange */
export type OwnReply = {
  readonly ok: true;
  readonly kind: 'own reply';
  /** Called once. Resolves when the reply was sent, or its client is gone; rejects only before anything was sent. */
  readonly begin: () => Promise<void>;
};

/** The worker that has a request's transaction answers the request. */
export type PassOn = {
  readonly ok: true;
  readonly kind: 'pass on';
  readonly name: Extract<Found, { kind: 'elsewhere' }>['name'];
  /** Its token, as the request has it. */
  readonly transaction: string;
  readonly timeoutMs: number;
  /** Whether the request is a COMMIT or a ROLLBACK. */
  readonly asksForEnd: boolean;
  readonly over: WhenOver;
};

/** Decides what is done if the transaction is over. @param wasSent a worker that has ended meanwhile may have had the request */
export type WhenOver = (ending: Ending, wasSent: boolean, over: TransactionOver) => Decision;
