// Requests to the gateway that serves this page, and the answers.
import type { Series } from './rise.ts';

/** `/v1/stats`. Numbers that are not known are null. */
export type Stats = {
  readonly version: string;
  readonly node: string;
  readonly section: string;
  readonly now: string;
  readonly started_at: string;
  readonly ready: boolean;
  readonly workers: readonly WorkerStats[];
  readonly backends: readonly BackendStats[];
  readonly totals: {
    readonly requests: number;
    readonly outcomes: Readonly<Record<string, number>>;
    readonly failures: Readonly<Record<string, number>>;
  };
  readonly history: History;
  readonly errors: readonly LastError[];
};

export type WorkerStats = {
  readonly slot: number;
  readonly pid: number | null;
  readonly state: 'serving' | 'starting' | 'silent' | 'down';
  readonly restarts: number;
  readonly runs_other_code: boolean;
  readonly ready: boolean;
  readonly unready: string | null;
  readonly requests_in_flight: number;
  readonly client_connections: number;
  readonly cpu_seconds: number;
  readonly memory_bytes: number;
  readonly event_loop_lag_ms: number | null;
};

export type BackendStats = {
  readonly section: string;
  readonly backend: string;
  readonly role: string | null;
  readonly reason: string | null;
  readonly lag_seconds: number | null;
  /** Beyond it a replica gets no reads; null: replicas are not read from. */
  readonly max_lag_seconds: number | null;
  readonly connections: {
    readonly busy: number;
    readonly idle: number;
    readonly connecting: number;
    readonly max: number;
  };
  readonly transactions_held: number;
  readonly waiting: number;
};

/** Per second, oldest first; null where nothing is known. */
export type History = {
  readonly interval_seconds: number;
  readonly at: readonly number[];
  readonly outcomes: Readonly<Record<string, Series>>;
  readonly latency_ms: Readonly<Record<'p50' | 'p95' | 'p99', Series>>;
  readonly phases_p95_ms: { readonly waiting: Series; readonly first_row: Series };
  readonly connections: { readonly busy: Series; readonly max: Series };
  readonly waiting: Series;
};

export type LastError = {
  readonly at: string;
  readonly worker: number;
  readonly request_id: string;
  readonly section: string | null;
  readonly status: number;
  readonly code: string | null;
  readonly errno: number | null;
  readonly outcome: string;
  readonly shape: string | null;
};

/** `/v1/requests`, the oldest first. */
export type ToldRequests = {
  readonly requests: readonly RunningRequest[];
  /** How many more there are. */
  readonly omitted: number;
  /** The slots of workers that did not answer. */
  readonly silent_workers: readonly number[];
};

/** `stalled`: its client takes nothing of its reply. */
type Phase = 'waiting' | 'running' | 'streaming' | 'stalled';

export type RunningRequest = {
  readonly id: string;
  readonly request_id: string;
  readonly trace_id: string | null;
  readonly age_ms: number;
  readonly phase: Phase;
  readonly client: string | null;
  readonly worker: number;
  readonly backend: string | null;
  readonly section: string;
  readonly shape: string | null;
};

/** `/v1/statements`, those that have taken most time first. */
export type ToldStatements = {
  /** The last ten minutes; the last point is under way. */
  readonly history: { readonly interval_seconds: number; readonly at: readonly number[] };
  readonly statements: readonly Statement[];
};

export type Statement = {
  readonly digest: string;
  readonly section?: string;
  readonly count: number;
  readonly errors: number;
  readonly errors_by: Readonly<Record<string, number>>;
  readonly rows: number;
  readonly total_ms: number;
  readonly share: number;
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly p99_ms: number | null;
  readonly last_seen: string | null;
  readonly example_id: string | null;
  /** Null: others have taken far more time in these ten minutes. */
  readonly history: {
    readonly count: readonly number[];
    readonly total_ms: readonly number[];
  } | null;
};

/** How a request failed: what the gateway says of it (RFC 9457), or that there was no answer. */
export class AskError extends Error {
  /** 0: there was no answer. */
  readonly status: number;
  readonly problem: Problem;
  constructor(status: number, message: string, problem: Problem = {}) {
    super(message);
    this.status = status;
    this.problem = problem;
  }
}

export type Problem = {
  readonly title?: string;
  readonly detail?: string;
  readonly code?: string;
  readonly errno?: number | null;
  readonly outcome?: string;
  readonly request_id?: string;
};

/** What a request carries beside its path. */
export type Asked = {
  readonly method?: string;
  readonly body?: string;
  readonly accept?: string;
  readonly signal: AbortSignal;
};

/** Asks this gateway. Rejects with an AskError. */
export type Ask = (path: string, asked: Asked) => Promise<Response>;

/** @param readToken the token to send; null: none. @param refused called with the token that is not the right one */
export function createAsk(
  readToken: () => string | null,
  refused: (token: string | null) => void,
): Ask {
  return async (path, { method = 'GET', body, accept = 'application/json', signal }) => {
    const headers = new Headers({ Accept: accept });
    const token = readToken();
    if (token !== null) headers.set('Authorization', `Bearer ${token}`);
    if (body !== undefined) headers.set('Content-Type', 'application/json');
    let response: Response;
    try {
      response = await fetch(path, {
        method,
        headers,
        signal,
        ...(body !== undefined && { body }),
      });
    } catch (cause) {
      throw asAskError(cause);
    }
    if (response.status === 401) refused(token);
    if (!response.ok) throw await readRefusal(response);
    return response;
  };
}

/** Whatever a request was ended by, as what people can read. */
export function asAskError(cause: unknown): AskError {
  if (cause instanceof AskError) return cause;
  const name = cause instanceof Error ? cause.name : '';
  if (name === 'TimeoutError') return new AskError(0, 'There was no answer in time.');
  if (name === 'AbortError') return new AskError(0, 'Stopped.');
  if (cause instanceof SyntaxError) return new AskError(0, 'The answer was no JSON.');
  return new AskError(0, 'The connection failed.');
}

/** Beside problems there are `/db`'s words: the guards stand before any path. */
async function readRefusal(response: Response): Promise<AskError> {
  const { status } = response;
  let told: Problem & { readonly ERROR?: string; readonly CODE?: string } = {};
  try {
    told = (await response.json()) as typeof told;
  } catch {
    // A status without words: whatever stands between us and the gateway says no more.
  }
  const { ERROR: detail, CODE: code } = told;
  const problem = { ...(detail && { detail }), ...(code && { code }), ...told };
  return new AskError(status, problem.detail ?? `The answer was status ${status}.`, problem);
}
