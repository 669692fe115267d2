// Why a connection to MySQL failed: the server refused it, TLS or the system failed, or the gateway does not accept the server.

/** The server broke the protocol, or asked for something that the gateway does not give it. The message may be logged. */
export class ServerFault extends Error {
  readonly code: 'PROTOCOL_VIOLATION' | 'INSECURE_PASSWORD';

  constructor(code: ServerFault['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** `refused`: by the server; `unusable`: the gateway does not accept the server; `silent`: no answer in time. */
export type ConnectFailure = {
  readonly kind: 'refused' | 'unusable' | 'tls' | 'silent' | 'unreachable';
  /** The server's error number; null: the server did not report an error. */
  readonly errno: number | null;
  /** For logs and operators, not for HTTP: it names hosts and accounts. The log escapes control characters. */
  readonly reason: string;
};

/** Fields that mysql2's and Node's errors may have. */
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
 * Describes the error of a failed attempt, without mysql2's names of errors: its table mixes all servers, which use some numbers
 * differently.
 */
export function describeConnectFailure(error: unknown): ConnectFailure {
  if (!(error instanceof Error)) return unreachable(String(error));
  const { code, errno, sqlMessage } = error as Raw;
  if (typeof errno === 'number' && errno > 0) {
    // The message of a statement's error may quote the statement; the login's does not.
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

/** OpenSSL's messages contain file names and lines, so its reason is used. Node's own messages are sentences. */
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

/** The same for HTTP, without hosts, accounts and the server's own words. */
export function publicReason({ kind, errno }: ConnectFailure): string {
  return errno === null ? meanings[kind] : `${meanings[kind]} (errno ${errno})`;
}

function unreachable(reason: string): ConnectFailure {
  return { kind: 'unreachable', errno: null, reason: shorten(reason) };
}

function shorten(text: string): string {
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text;
}
