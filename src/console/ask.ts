// Requests to the gateway that serves this page, and the answers.

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
  /** The permission that the client lacks. */
  readonly missing?: string;
  /** The parameter of a named statement that was refused. */
  readonly parameter?: string;
  readonly request_id?: string;
};

/** A request, beside its path. */
export type Asked = {
  readonly method?: string;
  readonly body?: string;
  readonly accept?: string;
  /** The Idempotency-Key. */
  readonly key?: string;
  readonly signal: AbortSignal;
};

/** Sends a request to this gateway. Rejects with an AskError. */
export type Ask = (path: string, asked: Asked) => Promise<Response>;

/** @param readToken the token to send; null: none. @param refused called with the token that the gateway rejected */
export function createAsk(
  readToken: () => string | null,
  refused: (token: string | null) => void,
): Ask {
  return async (path, { method = 'GET', body, accept = 'application/json', key, signal }) => {
    const headers = new Headers({ Accept: accept });
    const token = readToken();
    if (token !== null) headers.set('Authorization', `Bearer ${token}`);
    if (key !== undefined) headers.set('Idempotency-Key', key);
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
  let reply: Problem & {
    readonly ERROR?: string;
    readonly CODE?: string;
    readonly MISSING?: string;
  } = {};
  try {
    reply = (await response.json()) as typeof reply;
  } catch {
    // A proxy between this page and the gateway may answer without a problem.
  }
  const { ERROR: detail, CODE: code, MISSING: missing } = reply;
  const problem = {
    ...(detail && { detail }),
    ...(code && { code }),
    ...(missing && { missing }),
    ...reply,
  };
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
