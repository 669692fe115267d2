// One MySQL connection: mysql2 shakes hands, authenticates and starts TLS; then the socket is ours.
// The only file that knows mysql2. Must not know what a command is for.
import { connect, type Socket } from 'node:net';
import mysql from 'mysql2';
import { ColumnCache } from './column-cache.ts';
import { Framing } from './framing.ts';

const maxPacketBytes = 0xffffff + 4;
const keepAliveDelayMs = 10_000;
/** utf8mb4_general_ci: known to every MySQL and MariaDB; `SET NAMES` follows before any statement. */
const handshakeCharset = 'UTF8MB4_GENERAL_CI';
/**
 * The flags that make mysql2 differ from the C client: affected rows would be matched rows,
 * IGNORE_SPACE changes sql_mode, LOCAL_FILES lets a statement read files of this machine, and query
 * attributes would add two bytes to each statement.
 */
const unwantedFlags = [
  '-FOUND_ROWS',
  '-IGNORE_SPACE',
  '-LOCAL_FILES',
  '-ODBC',
  '-CLIENT_QUERY_ATTRIBUTES',
];

/** Where and as whom to connect. */
export type ConnectionSettings = {
  readonly host: string;
  readonly port: number;
  readonly socket: string | null;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly multiStatements: boolean;
  readonly tls: TlsSettings | null;
  readonly connectTimeoutMs: number;
  /** Where all connections of a worker read into, one after the other; not used with TLS. */
  readonly arena: Buffer;
};

/** TLS towards MySQL; PEM texts. `verify` checks the chain and the host name. */
export type TlsSettings = {
  readonly verify: boolean;
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
};

/** A command in flight: what to write, and who takes the answer. */
export interface Command {
  /** The bytes to write, headers included. */
  readonly packet: Buffer;
  /** Takes one packet of the answer; returns true when it was the last. */
  handlePacket(bytes: Buffer, start: number, end: number): boolean;
  /** The connection is gone before the answer was complete. */
  lost(reason: Error): void;
}

/** What mysql2 keeps to itself, and a test pins: the socket, and what the handshake found out. */
type Mysql2Connection = {
  readonly stream: Socket;
  readonly threadId: number;
  readonly _mariadbExtendedMetadata: boolean;
  readonly _handshakePacket: { readonly serverVersion: string };
  on(event: 'error', listener: (error: Error) => void): void;
  once(event: 'connect', listener: () => void): void;
  destroy(): void;
};

/** Who takes the bytes that were read into the arena; they are valid during the call only. */
type Intake = { receive: (bytes: Buffer) => void };

/** An authenticated connection. Commands are answered in the order in which they were sent. */
export class Connection {
  readonly threadId: number;
  readonly serverVersion: string;
  /** The column definitions of this connection's results. */
  readonly columns: ColumnCache;
  readonly #raw: Mysql2Connection;
  readonly #stream: Socket;
  readonly #framing: Framing;
  readonly #pending: Command[] = [];
  #lostReason: Error | null = null;
  #onLost: (reason: Error) => void = () => {};

  /** @param intake where the socket's bytes arrive when they do not come as events */
  constructor(raw: Mysql2Connection, intake: Intake | null = null) {
    this.#raw = raw;
    this.#stream = raw.stream;
    this.threadId = raw.threadId;
    this.serverVersion = raw._handshakePacket.serverVersion;
    this.columns = new ColumnCache(raw._mariadbExtendedMetadata);
    this.#framing = new Framing(
      (bytes, start, end) => this.#handlePacket(bytes, start, end),
      (reason) => this.#lose(new Error(`protocol violation: ${reason}`)),
    );
    this.#stream.removeAllListeners('data');
    const feed = (chunk: Buffer) => this.#framing.feed(chunk);
    if (intake === null) this.#stream.on('data', feed);
    else intake.receive = feed;
    this.#stream.on('error', (error) => this.#lose(error));
    this.#stream.on('end', () => this.#lose(new Error('the server closed the connection')));
    this.#stream.on('close', () => this.#lose(new Error('the connection was closed')));
  }

  /** MariaDB or MySQL (and what calls itself neither is treated as MySQL). */
  get flavour(): 'mariadb' | 'mysql' {
    return /mariadb/i.test(this.serverVersion) ? 'mariadb' : 'mysql';
  }

  get isLost(): boolean {
    return this.#lostReason !== null;
  }

  /** Sets who is told, once, that the connection is gone. */
  watch(onLost: (reason: Error) => void): void {
    this.#onLost = onLost;
  }

  /** Sends a command. On a lost connection nothing is written and `lost` is called at once. */
  send(command: Command): void {
    if (this.#lostReason !== null) {
      command.lost(this.#lostReason);
      return;
    }
    if (this.#pending.length === 0) this.#framing.expectedSequence = firstSequence(command);
    this.#pending.push(command);
    this.#stream.write(command.packet);
  }

  /** Sends several commands in one write; they are answered in order. */
  sendTogether(commands: readonly Command[]): void {
    const first = commands[0];
    if (first === undefined) return;
    if (this.#lostReason !== null) {
      for (const command of commands) command.lost(this.#lostReason);
      return;
    }
    if (this.#pending.length === 0) this.#framing.expectedSequence = firstSequence(first);
    this.#pending.push(...commands);
    this.#stream.write(Buffer.concat(commands.map(({ packet }) => packet)));
  }

  /** Stops reading; what one read has brought is still handed out. */
  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  /** Ends the connection at once, socket included; commands in flight are told that it is lost. */
  destroy(reason: Error): void {
    this.#lose(reason);
  }

  #handlePacket(bytes: Buffer, start: number, end: number): void {
    const command = this.#pending[0];
    if (command === undefined) {
      this.#lose(new Error('the server spoke without having been asked'));
      return;
    }
    let done: boolean;
    try {
      done = command.handlePacket(bytes, start, end);
    } catch (cause) {
      this.#lose(new Error('the answer could not be read', { cause }));
      return;
    }
    if (!done) return;
    this.#pending.shift();
    const next = this.#pending[0];
    this.#framing.expectedSequence = next === undefined ? 0 : firstSequence(next);
  }

  #lose(reason: Error): void {
    if (this.#lostReason !== null) return;
    this.#lostReason = reason;
    this.#raw.destroy();
    this.#stream.destroy();
    for (const command of this.#pending.splice(0)) command.lost(reason);
    this.#onLost(reason);
  }
}

/** An answer continues the numbering of the packets that asked for it. */
function firstSequence(command: Command): number {
  return (1 + Math.floor((command.packet.length - 4) / maxPacketBytes)) & 0xff;
}

/**
 * Connects and authenticates. The caller owns the connection and must destroy it.
 * @throws the server's or the socket's error; an abort of `signal` rejects with its reason
 */
export function openConnection(
  settings: ConnectionSettings,
  signal: AbortSignal,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const intake = settings.tls === null ? { receive: (_bytes: Buffer) => {} } : null;
    const options = mysql2Options(settings, intake);
    const raw = mysql.createConnection(options) as unknown as Mysql2Connection;
    const abort = () => fail(signal.reason as Error);
    const fail = (error: Error) => {
      signal.removeEventListener('abort', abort);
      raw.destroy();
      raw.stream.destroy();
      reject(error);
    };
    signal.addEventListener('abort', abort, { once: true });
    raw.on('error', fail);
    raw.once('connect', () => {
      signal.removeEventListener('abort', abort);
      resolve(new Connection(raw, intake));
    });
  });
}

/**
 * A socket that reads into the arena instead of allocating 64 KiB for each read. During the handshake
 * mysql2 gets copies, as events. Otherwise each read leaves its buffer to the garbage collector.
 */
function openSocket(settings: ConnectionSettings, intake: Intake): Socket {
  const { host, port, socket: path, arena } = settings;
  const socket = connect({
    ...(path === null ? { host, port } : { path }),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveDelayMs,
    onread: {
      buffer: arena,
      callback: (length) => {
        intake.receive(arena.subarray(0, length));
        return true;
      },
    },
  });
  intake.receive = (bytes) => socket.emit('data', Buffer.from(bytes));
  return socket;
}

function mysql2Options(
  settings: ConnectionSettings,
  intake: Intake | null,
): mysql.ConnectionOptions {
  const { tls } = settings;
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
    multipleStatements: settings.multiStatements,
    ...(intake === null ? {} : { stream: () => openSocket(settings, intake) }),
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
