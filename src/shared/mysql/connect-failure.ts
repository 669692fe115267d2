// Why a connection to MySQL failed: the server refused it, TLS or the system failed, or the gateway does not accept the server.
import { type ConnectFailureKind, connectFailures } from '../failure-codes.ts';

/** The server broke the protocol, or asked for something that the gateway does not give it. The message may be logged. */
export class ServerFault extends Error {
  readonly code: 'PROTOCOL_VIOLATION' | 'INSECURE_PASSWORD';

  constructor(code: ServerFault['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The time was over before the server's name was resolved, so that the server was not asked. */
export class NameTimeout extends Error {
  constructor(cause: Error) {
    super('DNS did not answer in time', { cause });
  }
}

/** How a login was protected: an account may require more. */
export type Protection = 'plain' | 'tls' | 'certificate';

export type ConnectFailure = {
  readonly kind: ConnectFailureKind;
  /** The server's error number; null: the server did not report an error. */
  readonly errno: number | null;
  /** For logs and operators, not for HTTP: it names hosts and accounts. The log escapes control characters. */
  readonly reason: string;
  /** The meaning of the number for the gateway, if it is known; for logs and operators. */
  readonly hint: string | null;
};

/** Fields that mysql2's and Node's errors may have, and `protection`, which `openConnection` adds. */
type Raw = {
  readonly code?: unknown;
  readonly errno?: unknown;
  readonly syscall?: unknown;
  readonly sqlMessage?: unknown;
  readonly library?: unknown;
  readonly reason?: unknown;
  readonly protection?: unknown;
};

const maxCharacters = 300;
const timeOuts: ReadonlySet<unknown> = new Set(['ETIMEDOUT', 'TimeoutError']);
const accessDenied = 1045;

/**
 * The server is there and knows the gateway, but accepts no connection now: limits of connections (1040, 1203, 1226), memory and threads
 * (1037, 1038, 1041, 1135), a Galera node that is not ready (1047), shutdown (1053), offline mode (3032, 3168), a connection that broke or
 * was killed meanwhile (1152, 1158 to 1161, 1317, 1927), time limits (1205, 1969, 3024).
 */
const temporary: ReadonlySet<number> = new Set([
  1037, 1038, 1040, 1041, 1047, 1053, 1135, 1152, 1158, 1159, 1160, 1161, 1203, 1205, 1226, 1317,
  1927, 1969, 3024, 3032, 3168,
]);

/** The server's words for some of these help only those who know its manual. */
const hints: ReadonlyMap<number, string> = new Map([
  [1040, 'the server has no connection left: max_connections'],
  [1044, 'the database does not exist, or the account has no rights on it'],
  [1049, 'the database does not exist'],
  [
    1129,
    'the server blocks this host after too many failed connections: FLUSH HOSTS on the server',
  ],
  [1130, 'the server has no account for this host'],
  [1203, 'the account has no connection left: max_user_connections'],
  [1226, 'the account has reached a limit of its own'],
  [1820, 'the password of the account has expired'],
  [1862, 'the password of the account has expired'],
  [3118, 'the account is locked'],
  [3159, 'the server accepts only TLS or a unix socket: require_secure_transport'],
  [3955, 'the account is blocked after too many failed logins'],
  [4150, 'the account is blocked after too many failed logins'],
  [4151, 'the account is locked'],
]);

const nameUnknown = 'DNS does not know the name that `host` has';
/** Also EAI_AGAIN, which the system reports if no DNS server answers. */
const dnsSilent = 'DNS does not answer; the database server was not asked';

/** MySQL has one number for all of it, and does not say which one is meant. */
const wrongLogin = 'the user or the password is wrong, or the account is for other hosts';
const unmet: Readonly<Record<Protection, string>> = {
  plain: 'it requires TLS (REQUIRE SSL, require_secure_transport), and `tls` is off',
  tls: 'it requires a client certificate (REQUIRE X509), and `tls_cert` is not set',
  certificate: 'it requires another client certificate',
};

/**
 * Describes the error of a failed attempt, without mysql2's names of errors: its table mixes all servers, which use some numbers
 * differently.
 */
export function describeConnectFailure(error: unknown): ConnectFailure {
  if (!(error instanceof Error)) return describe('server unreachable', String(error));
  const { code, errno, syscall } = error as Raw;
  if (typeof errno === 'number' && errno > 0) return describeRefusal(error, errno);
  if (error instanceof ServerFault) {
    return describe('server unusable', `${error.message} (${error.code})`);
  }
  if (error instanceof NameTimeout) return unresolved(error.message, dnsSilent);
  if (syscall === 'getaddrinfo') {
    return unresolved(error.message, code === 'ENOTFOUND' ? nameUnknown : dnsSilent);
  }
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT') return tls('the server speaks no TLS');
  if (code === 'HANDSHAKE_SSL_ERROR') return tls(tlsReason(error));
  if (code === 'PROTOCOL_CONNECTION_LOST') {
    return describe('server unreachable', 'the server closed the connection');
  }
  if (timeOuts.has(code) || timeOuts.has(error.name)) {
    return describe('server silent', 'no answer in time (ETIMEDOUT)');
  }
  return describe('server unreachable', typeof code === 'string' ? code : error.message);
}

function describeRefusal(error: Error, errno: number): ConnectFailure {
  const { sqlMessage, protection } = error as Raw;
  const kind = temporary.has(errno) ? 'server unavailable' : 'login refused';
  // The message of a statement's error may quote the statement; the login's does not.
  const reason =
    typeof sqlMessage === 'string' ? sqlMessage : 'a setting of the session was refused';
  const more = unmet[protection as Protection];
  const denied = more === undefined ? wrongLogin : `${wrongLogin}, or ${more}`;
  const hint = errno === accessDenied ? denied : (hints.get(errno) ?? null);
  return { kind, errno, reason: shorten(reason), hint };
}

/** OpenSSL's messages contain file names and lines, so its reason is used. Node's own messages are sentences. */
function tlsReason(error: Error): string {
  const { library, reason } = error as Raw;
  return typeof library === 'string' && typeof reason === 'string' ? reason : error.message;
}

function tls(reason: string): ConnectFailure {
  return describe('tls failed', `TLS: ${reason}`);
}

function unresolved(reason: string, hint: string): ConnectFailure {
  return { ...describe('name unresolved', reason), hint };
}

/** The same for HTTP, without hosts, accounts and the server's own words. */
export function publicReason({ kind, errno }: ConnectFailure): string {
  const { meaning } = connectFailures[kind];
  return errno === null ? meaning : `${meaning} (errno ${errno})`;
}

function describe(kind: ConnectFailureKind, reason: string): ConnectFailure {
  return { kind, errno: null, reason: shorten(reason), hint: null };
}

function shorten(text: string): string {
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text;
}
