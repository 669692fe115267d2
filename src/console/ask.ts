// Requests to the gateway that serves this page, and the answers.

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
  readonly file_faults: readonly FileFault[];
};

/** A fault of a file that the gateway could not use when it last read it. */
export type FileFault = {
  readonly section: string;
  readonly key: string;
  readonly at: string | null;
  readonly problem: string;
};

/** Values over time, oldest first; null: unknown. */
export type Series = readonly (number | null)[];

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
  readonly connect_errno: number | null;
  readonly lag_seconds: number | null;
  /** A replica with more lag gets no reads; null: replicas get no reads at all. */
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

/** Values per second, oldest first; null: unknown. */
export type History = {
  readonly interval_seconds: number;
  readonly at: readonly number[];
  readonly outcomes: Readonly<Record<string, Series>>;
  /** Those among them that the data refused, such as duplicate keys. */
  readonly data_refusals: Series;
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
  readonly error_name: string | null;
  readonly by_data: boolean;
  readonly outcome: string;
  readonly shape: string | null;
};

/** `/v1/requests`, the oldest first. */
export type RequestsReply = {
  readonly requests: readonly RunningRequest[];
  /** The number of further requests. */
  readonly omitted: number;
  /** The slots of workers that did not answer. */
  readonly silent_workers: readonly number[];
};

/** `stalled`: the client does not read its reply. */
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

/** `/v1/statements`, in order of total time. */
export type StatementsReply = {
  /** The last ten minutes; the last point is incomplete. */
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
  /** Null: not among the statements with the most time in these ten minutes. */
  readonly history: {
    readonly count: readonly number[];
    readonly total_ms: readonly number[];
  } | null;
};

/** A request that failed: with a problem (RFC 9457), or without an answer. */
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
  /** The gateway's addition to MySQL's message. */
  readonly hint?: string;
  readonly code?: string;
  readonly errno?: number | null;
  readonly outcome?: string;
  readonly request_id?: string;
};

/** A request, beside its path. */
export type Asked = {
  readonly method?: string;
  readonly body?: string;
  readonly accept?: string;
  readonly signal: AbortSignal;
};

/** Sends a request to this gateway. Rejects with an AskError. */
export type Ask = (path: string, asked: Asked) => Promise<Response>;

/** @param readToken the token to send; null: none. @param refused called with the token that the gateway rejected */
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

/** Describes for people why a request failed. */
export function asAskError(cause: unknown): AskError {
  if (cause instanceof AskError) return cause;
  const name = cause instanceof Error ? cause.name : '';
  if (name === 'TimeoutError') return new AskError(0, 'There was no answer in time.');
  if (name === 'AbortError') return new AskError(0, 'Stopped.');
  if (cause instanceof SyntaxError) return new AskError(0, 'The answer was not JSON.');
  return new AskError(0, 'The connection failed.');
}

/** The body is a problem, or has the keys of `/db`, since guards answer before any path. */
async function readRefusal(response: Response): Promise<AskError> {
  const { status } = response;
  let reply: Problem & { readonly ERROR?: string; readonly CODE?: string } = {};
  try {
    reply = (await response.json()) as typeof reply;
  } catch {
    // A proxy between this page and the gateway may answer without a problem.
  }
  const { ERROR: detail, CODE: code } = reply;
  const problem = { ...(detail && { detail }), ...(code && { code }), ...reply };
  return new AskError(
    status,
    describeProblem(problem, `The answer was status ${status}.`),
    problem,
  );
}

/** The message of a problem. @param otherwise if it has none */
export function describeProblem({ detail, hint }: Problem, otherwise: string): string {
  if (detail === undefined) return otherwise;
  return hint === undefined ? detail : `${detail}. ${hint}`;
}
