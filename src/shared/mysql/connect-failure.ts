// Why a connection to MySQL could not be made or cannot go on: the server, TLS, the system or the gateway itself refuses.

/** A server that broke the protocol, or asked for what it does not get. */
export class ServerFault extends Error {
  readonly code: 'PROTOCOL_VIOLATION' | 'INSECURE_PASSWORD';

  constructor(code: ServerFault['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** `refused`: the server is there and will not have us; `unusable`: we will not have it; `silent`: no answer in time. */
export type ConnectFailure = {
  readonly kind: 'refused' | 'unusable' | 'tls' | 'silent' | 'unreachable';
  /** The server's own number; null: it was not the server that said no. */
  readonly errno: number | null;
  /** For logs and people, not for HTTP: names hosts and accounts. Control characters are left to the log. */
  readonly reason: string;
};

/** What mysql2's and Node's errors may carry. */
type Raw = {
  readonly code?: unknown;
  readonly errno?: unknown;
  readonly sqlMessage?: unknown;
  readonly library?: unknown;
  readonly reason?: unknown;
};

const maxCharacters = 300;
const timeOuts: ReadonlySet<unknown> = new Set(['ETIMEDOUT', 'TimeoutError']);

/**
 * Describes what a failed attempt was rejected with. The names that mysql2 gives to errors are not used: its table is of
 * all servers together, and one's number is another's error.
 */
export function describeConnectFailure(error: unknown): ConnectFailure {
  if (!(error instanceof Error)) return unreachable(String(error));
  const { code, errno, sqlMessage } = error as Raw;
  if (typeof errno === 'number' && errno > 0) {
    // The message of a statement's error quotes the statement: only the login's is the server's own.
    const reason =
      typeof sqlMessage === 'string' ? sqlMessage : 'a setting of the session was refused';
    return { kind: 'refused', errno, reason: shorten(reason) };
  }
  if (error instanceof ServerFault) {
    return { kind: 'unusable', errno: null, reason: shorten(`${error.message} (${error.code})`) };
  }
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT') return tls('the server speaks no TLS');
  if (code === 'HANDSHAKE_SSL_ERROR') return tls(tlsReason(error));
  if (code === 'PROTOCOL_CONNECTION_LOST') return unreachable('the server closed the connection');
  if (timeOuts.has(code) || timeOuts.has(error.name)) {
    return { kind: 'silent', errno: null, reason: 'no answer in time (ETIMEDOUT)' };
  }
  return unreachable(typeof code === 'string' ? code : error.message);
}

/** OpenSSL's messages hold its file names and lines; its reason is what matters. Node's own are sentences. */
function tlsReason(error: Error): string {
  const { library, reason } = error as Raw;
  return typeof library === 'string' && typeof reason === 'string' ? reason : error.message;
}

function tls(reason: string): ConnectFailure {
  return { kind: 'tls', errno: null, reason: shorten(`TLS: ${reason}`) };
}

const meanings: Readonly<Record<ConnectFailure['kind'], string>> = {
  refused: 'the server refuses the account, the connection or a session setting',
  unusable: 'the server breaks the protocol or does not get its password',
  tls: 'TLS towards the server failed',
  silent: 'the server does not answer in time',
  unreachable: 'the server cannot be reached',
};

/** The same for HTTP: no hosts, no accounts, no words of the server's; the log has those. */
export function publicReason({ kind, errno }: ConnectFailure): string {
  return errno === null ? meanings[kind] : `${meanings[kind]} (errno ${errno})`;
}

function unreachable(reason: string): ConnectFailure {
  return { kind: 'unreachable', errno: null, reason: shorten(reason) };
}

function shorten(text: string): string {
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text;
}
