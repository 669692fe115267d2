// Endpoints for people, balancers and Prometheus: /livez, /readyz, /health, /metrics, and the supervisor's reports under /v1.
import { anonymousName, isAllowed } from '../../shared/clients/client.ts';
import type {
  ListedNamed,
  NamedCounts,
  StatementList,
} from '../../shared/observe/statement-sums.ts';
import type { RequestList } from '../../shared/observe/stats.ts';
import type { Caller } from '../../shared/process/calls.ts';
import type { SupervisorCalls } from '../../shared/process/messages.ts';
import type { NoPrimary } from '../../shared/servers/judge.ts';
import { jsonType } from '../encode/head.ts';
import { type Failure, forbidden, refusal } from '../failure/failure.ts';
import { sendFailure, sendText } from '../http/failure-reply.ts';
import type { OutgoingReply } from '../http/reply.ts';
import type { RequestRecord } from '../observe/observation.ts';
import type { Handler } from './endpoint.ts';
import type { NamedEntry } from './named/statements.ts';

const expositionType = 'text/plain; version=0.0.4; charset=utf-8';

/** The reply if the supervisor, which alone knows, does not answer. */
const noAnswer: Failure = {
  ...refusal('NO_METRICS', 'The supervisor did not answer in time.'),
  retryAfterSeconds: 1,
};

/** Whether this worker can serve requests; if not, why, as a code and MySQL's number. */
export type ReadyAnswer = (
  | { readonly isReady: true }
  | { readonly isReady: false; readonly code: string; readonly errno: number | null }
) & {
  /** Each section by its name, if there are several or one has several servers. */
  readonly sections?: Readonly<Record<string, SectionAnswer>>;
};

/** One section: the roles of its servers in the order of `host`, and the reasons, without names; missing if it has one server. */
export type SectionAnswer = {
  readonly ready: boolean;
  readonly roles?: readonly string[];
  readonly reasons?: readonly string[];
  /** Why no server takes writes; missing if one does. */
  readonly no_primary?: NoPrimary | undefined;
};

/** The process answers; nothing else is checked. */
export const livez = watching((response) => sendText(response, 'ok\n'));

/** Ends the connection with each reply, so that the next probe may reach another worker. */
function watching(answer: (response: OutgoingReply, record: RequestRecord) => void): Handler {
  return (_request, response, _head, record) => {
    response.shouldKeepAlive = false;
    response.addHeaders(['X-Request-ID', record.requestId]);
    answer(response, record);
  };
}

/** The server's own message is not in the reply, because this path is open. @param ask whether this worker can serve requests */
export function createReadyz(ask: () => Promise<ReadyAnswer>): Handler {
  return watching((response) => {
    void ask().then((answer) => {
      const { sections } = answer;
      if (answer.isReady) {
        sendText(response, JSON.stringify({ ready: true, sections }), jsonType);
        return;
      }
      const { code, errno } = answer;
      response.addHeaders(['Retry-After', '1']);
      sendText(response, JSON.stringify({ ready: false, code, errno, sections }), jsonType, 503);
    });
  });
}

/** DBSlayer's own health check, as readiness. @param ask as for /readyz */
export function createHealth(ask: () => Promise<ReadyAnswer>): Handler {
  return watching((response) => {
    void ask().then(({ isReady }) => {
      const status = isReady ? 200 : 503;
      const text = JSON.stringify({ status: isReady ? 'ok' : 'unavailable' });
      sendText(response, text, jsonType, status);
    });
  });
}

/** The metrics of all workers as Prometheus text. */
export function createMetrics(supervisor: Caller<SupervisorCalls>): Handler {
  return watching((response, { requestId }) => {
    void supervisor.ask('metrics', null).then((text) => {
      if (text === null) sendFailure(response, noAnswer, requestId);
      else sendText(response, text, expositionType);
    });
  });
}

/** The path of the list of requests. The id of one of them follows a slash. */
export const requestsPath = '/v1/requests';

const noRequest = refusal('NOT_FOUND', 'There is no such request, or it is over.');

/** An X-Request-ID may contain characters that have a meaning in a path. A malformed escape stands for itself. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The state of the instance, as JSON. */
export function createStats(supervisor: Caller<SupervisorCalls>): Handler {
  return watching((response, { requestId }) => {
    replyWith(response, requestId, supervisor.ask('stats', null));
  });
}

/** The cost of statements, as JSON. @param all the named statements, whether or not they were called */
export function createStatementList(
  supervisor: Caller<SupervisorCalls>,
  all: () => readonly NamedEntry[],
): Handler {
  return watching((response, { requestId }) => {
    const asked = supervisor.ask('statements', null);
    const listed = asked.then(
      (counted): StatementList | null =>
        counted && { ...counted, named: listNamed(all(), counted.named) },
    );
    replyWith(response, requestId, listed);
  });
}

/** Counts of a name that no file has any more are left out. */
function listNamed(
  all: readonly NamedEntry[],
  counted: readonly NamedCounts[],
): readonly ListedNamed[] {
  const byName = new Map(counted.map((counts) => [counts.name, counts]));
  return all.map(({ statement, section }) => {
    const { name, kind, for: names } = statement;
    const { calls = 0, failed = 0, total_ms = 0 } = byName.get(name) ?? {};
    return { name, section, kind, for: names ?? ['*'], calls, failed, total_ms };
  });
}

/**
 * The requests that run now: all, or those of the caller if it may not see others'. Callers without credentials are one client, and none
 * of them may see what another one runs.
 */
export function createRequestList(supervisor: Caller<SupervisorCalls>): Handler {
  return watching((response, { requestId, caller }) => {
    const { client, owner, claims } = caller;
    const asked = isAllowed(client, 'observe') ? null : { owner, claims };
    if (asked !== null && client.name === anonymousName) {
      replyWith(response, requestId, Promise.resolve(noRequests));
      return;
    }
    const list = supervisor.ask('requests', asked);
    const isShown = asked === null || isAllowed(client, 'sql');
    replyWith(response, requestId, isShown ? list : list.then(withoutShapes));
  });
}

const noRequests: RequestList = { requests: [], omitted: 0, silent_workers: [] };

/** A client that may not use SQL does not see the names in it. */
function withoutShapes(list: RequestList | null): RequestList | null {
  if (list === null) return null;
  return { ...list, requests: list.requests.map((request) => ({ ...request, shape: null })) };
}

function replyWith(
  response: OutgoingReply,
  requestId: string,
  asked: Promise<object | null>,
): void {
  void asked.then((report) => {
    if (report === null) sendFailure(response, noAnswer, requestId);
    else sendText(response, JSON.stringify(report), jsonType);
  });
}

/** Numbers that the list of requests gives, and that are no request id of a client's, as far as their form shows. */
const listedId = /^\d+-\d+-\d+$/;

/**
 * Ends the request whose id in the list is the last part of the path, in whichever worker it runs, or the caller's own requests with that
 * `X-Request-ID`. Callers without credentials are one client, and none of them may end what another one runs.
 */
export function createKill(supervisor: Caller<SupervisorCalls>): Handler {
  return (request, response, head, record) => {
    watching((reply, { requestId, caller }) => {
      const mayEndOthers = isAllowed(caller.client, 'kill');
      const id = decode(head.path.slice(requestsPath.length + 1));
      if (!mayEndOthers && caller.client.name === anonymousName) {
        sendFailure(reply, forbidden('kill'), requestId);
        return;
      }
      const { owner, claims } = caller;
      const asked = supervisor.ask('kill', { id, owner: { owner, claims }, mayEndOthers });
      const missing = !mayEndOthers && listedId.test(id) ? forbidden('kill') : noRequest;
      void asked.then((answer) => {
        if (answer === null) sendFailure(reply, noAnswer, requestId);
        else if (!answer.isFound) sendFailure(reply, missing, requestId);
        else sendText(reply, JSON.stringify({ id, killed: true }), jsonType);
      });
    })(request, response, head, record);
  };
}
