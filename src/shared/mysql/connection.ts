// One authenticated MySQL connection: commands out, their answers in, in order, until it is lost.
import type { Socket } from 'node:net';
import { ColumnCache } from './column-cache.ts';
import { answerSequence } from './command-packets.ts';
import { ServerFault } from './connect-failure.ts';
import { Framing, type PacketsAhead } from './framing.ts';

/** A command: the bytes to write, and the handlers of the answer. */
export interface Command {
  /** The bytes to write, headers included. */
  readonly packet: Buffer;
  /** Takes one packet of the answer; returns true if it is the last. */
  handlePacket(bytes: Buffer, start: number, end: number): boolean;
  /** Number of cells in a row of the answer; missing or 0: its packets are not rows. */
  readonly rowCells?: number;
  /** With at least this many bytes ahead, `takeAhead` may take several packets at once; missing or Infinity: it may not. */
  readonly aheadFrom?: number;
  /** Takes packets of the answer before they are delivered one by one, but not the last one. */
  takeAhead?(ahead: PacketsAhead): void;
  /** The connection was lost before the answer was complete. */
  lost(reason: Error): void;
}

/** Takes bytes that were read into the arena, from `start` to `end`, which are valid during the call only. */
export type ArenaReader = { receive: (arena: Buffer, start: number, end: number) => void };

/** A socket after the handshake, and the results of the handshake. */
export type Established = {
  readonly socket: Socket;
  readonly threadId: number;
  readonly serverVersion: string;
  /** Whether MariaDB's extended metadata was negotiated. */
  readonly extendedMetadata: boolean;
  /** Whether query attributes were negotiated. */
  readonly hasQueryAttributes: boolean;
  /** Whether the login succeeded only because the server remembers the password. */
  readonly isRemembered: boolean;
  /** Receives the socket's bytes; null: they come as events. */
  readonly arenaReader: ArenaReader | null;
  /** Frees what the handshake has opened. */
  readonly end: () => void;
};

const singly = Number.POSITIVE_INFINITY;
/** Limit of packets that are not rows: definitions, errors. */
const minPacketBytes = 64 * 1024;
/** Longest cell while the server's max_allowed_packet is not known: one packet. */
const usualCellBytes = 16 * 1024 * 1024;
/** Limit of a row of several cells, unless one cell may be longer: memory holds the whole row. */
const wideRowBytes = 64 * 1024 * 1024;
/**
 * After this number of packets, which take a microsecond or two each, the event loop runs other work. Successive reads can bring up to
 * 2 MiB at a time: 190,000 answers to `do 1`.
 */
const maxPacketsInTurn = 8192;
/** Longest length field before a cell. */
const cellHeaderBytes = 9;

/** Called when a connection is lost. @param wasAsked commands were in flight on it */
type OnLost = (reason: Error, wasAsked: boolean) => void;

/** An authenticated connection. Commands are answered in the order in which they were sent. */
export class Connection {
  readonly threadId: number;
  readonly serverVersion: string;
  /** Whether each statement must list its query attributes, even if it has none. */
  readonly hasQueryAttributes: boolean;
  /** Whether column definitions have MariaDB's extended metadata. */
  readonly hasExtendedMetadata: boolean;
  /** Whether the login succeeded only because the server remembers the password: otherwise the gateway would not send it. */
  readonly isRemembered: boolean;
  /** The column definitions of this connection's results. */
  readonly columns: ColumnCache;
  /** The longest cell that the server can send: its max_allowed_packet, if known. */
  longestCellBytes = usualCellBytes;
  readonly #socket: Socket;
  readonly #endHandshake: () => void;
  readonly #framing: Framing;
  readonly #pending: Command[] = [];
  /** Whether a caller has paused reading. */
  #isPaused = false;
  /** Whether reading is paused until the event loop has run other work. */
  #isResting = false;
  #packetsInTurn = 0;
  #lostReason: Error | null = null;
  #isClosedByServer = false;
  #onLost: OnLost = () => {};

  constructor(established: Established) {
    const { socket, threadId, serverVersion, extendedMetadata, arenaReader, end } = established;
    this.hasQueryAttributes = established.hasQueryAttributes;
    this.hasExtendedMetadata = extendedMetadata;
    this.isRemembered = established.isRemembered;
    this.#socket = socket;
    this.#endHandshake = end;
    this.threadId = threadId;
    this.serverVersion = serverVersion;
    this.columns = new ColumnCache(extendedMetadata, this.flavour);
    this.#framing = new Framing(
      (bytes, start, end) => this.#handlePacket(bytes, start, end),
      (reason) =>
        this.#lose(new ServerFault('PROTOCOL_VIOLATION', `protocol violation: ${reason}`)),
      (ahead) => this.#offerAhead(ahead),
      () => this.#maxPacketBytes(),
    );
    this.#socket.removeAllListeners('data');
    if (arenaReader === null) {
      this.#socket.on('data', (chunk: Buffer) => this.#feed(chunk, 0, chunk.length));
    } else {
      arenaReader.receive = (arena, start, end) => this.#feed(arena, start, end);
    }
    this.#socket.on('error', (error) => this.#lose(error));
    this.#socket.on('end', () => this.#closedByServer());
    this.#socket.on('close', () => this.#lose(new Error('the connection was closed')));
  }

  /** MariaDB or MySQL; a server that claims to be neither is treated as MySQL. */
  get flavour(): 'mariadb' | 'mysql' {
    return /mariadb/i.test(this.serverVersion) ? 'mariadb' : 'mysql';
  }

  get isLost(): boolean {
    return this.#lostReason !== null;
  }

  /** Whether the server closed the connection: it was killed there, was idle for too long, or the server has stopped. */
  get isClosedByServer(): boolean {
    return this.#isClosedByServer;
  }

  /** Sets the handler that is called once when the connection is lost, before the `lost` of its commands. */
  watch(onLost: OnLost): void {
    this.#onLost = onLost;
  }

  /** Sends a command. On a lost connection nothing is written and `lost` is called at once. */
  send(command: Command): void {
    if (this.#lostReason !== null) {
      command.lost(this.#lostReason);
      return;
    }
    if (this.#pending.length === 0) this.#framing.expectedSequence = answerSequence(command.packet);
    this.#pending.push(command);
    this.#socket.write(command.packet);
  }

  /** Sends several commands in one write; they are answered in order. */
  sendTogether(commands: readonly Command[]): void {
    const first = commands[0];
    if (first === undefined) return;
    if (this.#lostReason !== null) {
      for (const command of commands) command.lost(this.#lostReason);
      return;
    }
    if (this.#pending.length === 0) this.#framing.expectedSequence = answerSequence(first.packet);
    this.#pending.push(...commands);
    this.#socket.write(Buffer.concat(commands.map(({ packet }) => packet)));
  }

  /** Stops reading; packets of the latest read are still delivered. */
  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isResting) this.#socket.resume();
  }

  /** Ends the connection at once, socket included, and calls `lost` of the commands in flight. */
  destroy(reason: Error): void {
    this.#lose(reason);
  }

  #feed(chunk: Buffer, start: number, end: number): void {
    this.#framing.feed(chunk, start, end);
    if (this.#packetsInTurn >= maxPacketsInTurn) this.#rest();
  }

  /** Pauses reading for one round of the event loop. */
  #rest(): void {
    this.#packetsInTurn = 0;
    if (this.#isResting || this.isLost) return;
    this.#isResting = true;
    this.#socket.pause();
    setImmediate(() => {
      this.#isResting = false;
      if (!this.#isPaused && !this.isLost) this.#socket.resume();
    });
  }

  #handlePacket(bytes: Buffer, start: number, end: number): void {
    this.#packetsInTurn += 1;
    const command = this.#pending[0];
    if (command === undefined) {
      const message = 'the server sent a packet though no command is in flight';
      this.#lose(new ServerFault('PROTOCOL_VIOLATION', message));
      return;
    }
    let done: boolean;
    try {
      done = command.handlePacket(bytes, start, end);
    } catch (cause) {
      this.#lose(unreadable(cause));
      return;
    }
    this.#framing.aheadFrom = done ? singly : (command.aheadFrom ?? singly);
    if (!done) return;
    this.#pending.shift();
    const next = this.#pending[0];
    this.#framing.expectedSequence = next === undefined ? 0 : answerSequence(next.packet);
  }

  /** The server sends rows of any length: max_allowed_packet bounds only the cells. */
  #maxPacketBytes(): number {
    const cell = this.longestCellBytes + cellHeaderBytes;
    const row = (this.#pending[0]?.rowCells ?? 0) * cell;
    return Math.max(minPacketBytes, Math.min(row, Math.max(cell, wideRowBytes)));
  }

  #offerAhead(ahead: PacketsAhead): void {
    const command = this.#pending[0];
    try {
      command?.takeAhead?.(ahead);
      this.#framing.aheadFrom = command?.aheadFrom ?? singly;
    } catch (cause) {
      this.#lose(unreadable(cause));
    }
  }

  #closedByServer(): void {
    this.#isClosedByServer = !this.isLost;
    this.#lose(new Error('the server closed the connection'));
  }

  #lose(reason: Error): void {
    if (this.#lostReason !== null) return;
    this.#lostReason = reason;
    this.#endHandshake();
    this.#socket.destroy();
    const commands = this.#pending.splice(0);
    // The owner hears of it while the connection is still acquired: the commands release it.
    this.#onLost(reason, commands.length > 0);
    for (const command of commands) command.lost(reason);
  }
}

/** An exception while an answer is read ends only its connection. */
function unreadable(cause: unknown): Error {
  return cause instanceof ServerFault
    ? cause
    : new Error('the answer could not be read', { cause });
}
