// Opens a connection: mysql2 does the handshake, the login and TLS; then the gateway takes the socket over. No other file lets mysql2 talk to
// a server.

import { createRequire } from 'node:module';
import { connect, isIP, type Socket } from 'node:net';
import mysql from 'mysql2';
import { NameTimeout, type Protection } from './connect-failure.ts';
import { type ArenaReader, Connection } from './connection.ts';
import {
  guardHandshake,
  type HandshakeParser,
  type HandshakingConnection,
  keepToOffer,
  plainTcpPlugins,
} from './handshake.ts';

const { version } = createRequire(import.meta.url)('mysql2/package.json') as { version: string };

/** The client library's version (mysql_get_client_info of the C API). */
export const clientInfo: string = version;

const keepAliveDelayMs = 10_000;
/** Room in the arena before the bytes of a read, for the beginning of a packet that the previous read has cut. */
const arenaHeadroomBytes = 16 * 1024;
/** That room, and 64 KiB for one read. */
export const minArenaBytes = arenaHeadroomBytes + 64 * 1024;
/** utf8mb4_general_ci: every MySQL and MariaDB has it. `SET NAMES` follows before any statement. */
const handshakeCharset = 'UTF8MB4_GENERAL_CI';
/**
 * The flags in which mysql2 differs from the C client: FOUND_ROWS reports matched rows as affected, IGNORE_SPACE changes sql_mode, and
 * LOCAL_FILES lets a statement read files of this machine.
 */
const unwantedFlags = ['-FOUND_ROWS', '-IGNORE_SPACE', '-LOCAL_FILES', '-ODBC'];

/** Address, account and options of a connection. */
export type ConnectionSettings = {
  readonly host: string;
  readonly port: number;
  readonly socket: string | null;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly tls: TlsSettings | null;
  /** PEM texts: the RSA keys that the server may have, for a password over TCP without TLS. */
  readonly serverKeys: readonly string[];
  readonly connectTimeoutMs: number;
  /** Buffer of at least `minArenaBytes` into which all connections of a process read, one after another; not used with TLS. */
  readonly arena: Buffer;
};

/** TLS towards MySQL; PEM texts. `verify` checks the chain and the host name. */
export type TlsSettings = {
  readonly verify: boolean;
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
};

/** Internals of mysql2, which a test pins: socket, parser, and results of the handshake. */
type Mysql2Connection = HandshakingConnection & {
  readonly stream: Socket;
  packetParser: HandshakeParser;
  readonly threadId: number;
  readonly _mariadbExtendedMetadata: boolean;
  readonly _handshakePacket: { readonly serverVersion: string };
  on(event: 'error', listener: (error: Error) => void): void;
  once(event: 'connect', listener: () => void): void;
  destroy(): void;
};

/**
 * Connects and authenticates. The caller owns the connection and must destroy it.
 * @throws the server's or the socket's error, a ServerFault; an abort of `signal` rejects with its reason, or a NameTimeout that has it as
 *   its cause
 */
export function openConnection(
  settings: ConnectionSettings,
  signal: AbortSignal,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const arenaReader = settings.tls === null ? { receive: () => {} } : null;
    let isRemembered = false;
    const onRemembered = () => {
      isRemembered = true;
    };
    const options = mysql2Options(settings, arenaReader, onRemembered);
    const raw = mysql.createConnection(options) as unknown as Mysql2Connection;
    const isResolving = watchName(settings, raw.stream);
    const abort = () => fail(signal.reason as Error);
    const fail = (error: Error) => {
      signal.removeEventListener('abort', abort);
      raw.destroy();
      raw.stream.destroy();
      const isLate =
        isResolving() && (signal.aborted || ('code' in error && error.code === 'ETIMEDOUT'));
      reject(
        isLate
          ? new NameTimeout(error)
          : Object.assign(error, { protection: protectionOf(settings) }),
      );
    };
    signal.addEventListener('abort', abort, { once: true });
    guardHandshake(raw, fail);
    const hasQueryAttributes = keepToOffer(raw);
    raw.on('error', fail);
    raw.once('connect', () => {
      signal.removeEventListener('abort', abort);
      resolve(
        new Connection({
          socket: raw.stream,
          threadId: raw.threadId,
          serverVersion: raw._handshakePacket.serverVersion,
          extendedMetadata: raw._mariadbExtendedMetadata,
          hasQueryAttributes: hasQueryAttributes(),
          isRemembered,
          arenaReader,
          end: () => raw.destroy(),
        }),
      );
    });
  });
}

/** @returns whether the server's name is still being resolved */
function watchName({ host, socket }: ConnectionSettings, stream: Socket): () => boolean {
  let isResolving = socket === null && isIP(host) === 0;
  stream.once('lookup', () => {
    isResolving = false;
  });
  return () => isResolving;
}

function protectionOf({ tls }: ConnectionSettings): Protection {
  if (tls === null) return 'plain';
  return tls.cert === null ? 'tls' : 'certificate';
}

/**
 * Opens a socket that reads into the arena: otherwise each read allocates 64 KiB for the garbage collector. During the handshake mysql2 gets
 * copies, as events.
 */
function openSocket(settings: ConnectionSettings, arenaReader: ArenaReader): Socket {
  const { host, port, socket: path, arena } = settings;
  const buffer = arena.subarray(arenaHeadroomBytes);
  const socket = connect({
    ...(path === null ? { host, port } : { path }),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveDelayMs,
    onread: {
      buffer,
      callback: (length) => {
        arenaReader.receive(arena, arenaHeadroomBytes, arenaHeadroomBytes + length);
        return true;
      },
    },
  });
  arenaReader.receive = (bytes, start, end) =>
    socket.emit('data', Buffer.from(bytes.subarray(start, end)));
  return socket;
}

/** Replaces mysql2's own socket: without TLS it must read into the arena, with TLS it must know its address. */
function streamOf(
  settings: ConnectionSettings,
  arenaReader: ArenaReader | null,
): { stream?: () => Socket } {
  if (arenaReader !== null) return { stream: () => openSocket(settings, arenaReader) };
  const { socket, host, port } = settings;
  return socket === null ? { stream: () => connectNamed(host, port) } : {};
}

function mysql2Options(
  settings: ConnectionSettings,
  arenaReader: ArenaReader | null,
  onRemembered: () => void,
): mysql.ConnectionOptions {
  const { tls, serverKeys } = settings;
  return {
    ...(settings.socket === null
      ? { host: settings.host, port: settings.port }
      : { socketPath: settings.socket }),
    user: settings.user,
    password: settings.password,
    database: settings.database,
    charset: handshakeCharset,
    connectTimeout: settings.connectTimeoutMs,
    disableEval: true,
    enableKeepAlive: true,
    keepAliveInitialDelay: keepAliveDelayMs,
    flags: unwantedFlags,
    // Transactions of the gateway begin with several statements at once. Those of clients are refused by their text.
    multipleStatements: true,
    ...(tls === null && settings.socket === null
      ? { authPlugins: plainTcpPlugins({ serverKeys, onRemembered }) }
      : {}),
    ...streamOf(settings, arenaReader),
    ...(tls === null
      ? {}
      : {
          ssl: {
            rejectUnauthorized: tls.verify,
            verifyIdentity: tls.verify,
            ...(tls.ca === null ? {} : { ca: tls.ca }),
            ...(tls.cert === null ? {} : { cert: tls.cert }),
            ...(tls.key === null ? {} : { key: tls.key }),
          },
        }),
  };
}

/** The name that Node's TLS takes from a socket if the caller gives none (`_tls_wrap`, Node 20 to 24). */
type Named = { _host?: string };

/**
 * Connects with the address as the name for TLS. Node keeps only names, and mysql2 does not pass the address on: without this, a certificate
 * for `localhost` would be valid for every server that is configured by its address, and one for the address for none.
 */
function connectNamed(host: string, port: number): Socket {
  const socket = connect({
    host,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveDelayMs,
  });
  if (isIP(host) !== 0) (socket as Named)._host = host;
  return socket;
}
