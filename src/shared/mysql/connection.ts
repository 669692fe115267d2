// One authenticated MySQL connection: commands out, their answers in, in order, until it is lost.
// Must not know how it was opened, nor what a command is for.
import type { Socket } from 'node:net';
import { ColumnCache } from './column-cache.ts';
import { answerSequence } from './command-packets.ts';
import { ServerFault } from './connect-failure.ts';
import { Framing, type PacketsAhead } from './framing.ts';

/** A command in flight: what to write, and who takes the answer. */
export interface Command {
  /** The bytes to write, headers included. */
  readonly packet: Buffer;
  /** Takes one packet of the answer; returns true when it was the last. */
  handlePacket(bytes: Buffer, start: number, end: number): boolean;
  /** How many cells a row of the answer has; nothing, or 0: its packets are no rows. */
  readonly rowCells?: number;
  /** From so many bytes on the packets ahead may be taken several at once; Infinity, or nothing: they may not. */
  readonly aheadFrom?: number;
  /** Takes packets of the answer before they are handed out singly, but not the last one. */
  takeAhead?(ahead: PacketsAhead): void;
  /** The connection is gone before the answer was complete. */
  lost(reason: Error): void;
}

/** Who takes what was read into the arena: the bytes from `start` to `end`, valid during the call only. */
export type ArenaReader = { receive: (arena: Buffer, start: number, end: number) => void };

/** A socket on which hands were shaken, and what that found out. */
export type Established = {
  readonly socket: Socket;
  readonly threadId: number;
  readonly serverVersion: string;
  /** Whether MariaDB's extended metadata was negotiated. */
  readonly extendedMetadata: boolean;
  /** Whether query attributes were negotiated. */
  readonly hasQueryAttributes: boolean;
  /** Whether the server let us in only because it remembers the password. */
  readonly isRemembered: boolean;
  /** Where the socket's bytes arrive; null: as its events. */
  readonly arenaReader: ArenaReader | null;
  /** Ends what shook hands. */
  readonly end: () => void;
};

const singly = Number.POSITIVE_INFINITY;
/** What any packet may have that is no row: definitions, errors. */
const minPacketBytes = 64 * 1024;
/** While nothing is known of a server: a cell in one packet. */
const usualCellBytes = 16 * 1024 * 1024;
/** A row of several cells may have so much, or as much as one cell: it is held in memory as a whole. */
const wideRowBytes = 64 * 1024 * 1024;
/**
 * After this number of packets that were handled one by one, a microsecond or two each, others have their turn. One read after the other
 * brings up to 2 MiB in a turn: 190,000 answers to `do 1`.
 */
const maxPacketsInTurn = 8192;
/** The most that stands before a cell to tell its length. */
const cellHeaderBytes = 9;

/** Told that a connection is gone; `wasAsked`: commands were in flight on it. */
type OnLost = (reason: Error, wasAsked: boolean) => void;

/** An authenticated connection. Commands are answered in the order in which they were sent. */
export class Connection {
  readonly threadId: number;
  readonly serverVersion: string;
  /** Whether statements are sent with query attributes, if only to say that they have none. */
  readonly hasQueryAttributes: boolean;
  /** Whether the server let us in only because it remembers the password: if it does not, the gateway sends it no password. */
  readonly isRemembered: boolean;
  /** The column definitions of this connection's results. */
  readonly columns: ColumnCache;
  /** The longest cell that the server can send: its max_allowed_packet, once that is known. */
  longestCellBytes = usualCellBytes;
  readonly #socket: Socket;
  readonly #endHandshake: () => void;
  readonly #framing: Framing;
  readonly #pending: Command[] = [];
  /** Whether a caller has paused reading. */
  #isPaused = false;
  /** Whether nothing is read until others have had their turn. */
  #isResting = false;
  #packetsInTurn = 0;
  #lostReason: Error | null = null;
  #onLost: OnLost = () => {};

  constructor(established: Established) {
    const { socket, threadId, serverVersion, extendedMetadata, arenaReader, end } = established;
    this.hasQueryAttributes = established.hasQueryAttributes;
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
    this.#socket.on('end', () => this.#lose(new Error('the server closed the connection')));
    this.#socket.on('close', () => this.#lose(new Error('the connection was closed')));
  }

  /** MariaDB or MySQL (and what calls itself neither is treated as MySQL). */
  get flavour(): 'mariadb' | 'mysql' {
    return /mariadb/i.test(this.serverVersion) ? 'mariadb' : 'mysql';
  }

  get isLost(): boolean {
    return this.#lostReason !== null;
  }

  /** Sets who is told, once, that the connection is gone: before the commands that were in flight on it are. */
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

  /** Stops reading; what one read has brought is still handed out. */
  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isResting) this.#socket.resume();
  }

  /** Ends the connection at once, socket included; commands in flight are told that it is lost. */
  destroy(reason: Error): void {
    this.#lose(reason);
  }

  #feed(chunk: Buffer, start: number, end: number): void {
    this.#framing.feed(chunk, start, end);
    if (this.#packetsInTurn >= maxPacketsInTurn) this.#rest();
  }

  /** Nothing is read until the event loop has gone round. */
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
      const message = 'the server spoke without having been asked';
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

  /** The server sends a row whatever its length: only its cells are bounded by max_allowed_packet. */
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

  #lose(reason: Error): void {
    if (this.#lostReason !== null) return;
    this.#lostReason = reason;
    this.#endHandshake();
    this.#socket.destroy();
    const commands = this.#pending.splice(0);
    // Whoever keeps the connection hears of it while it is still lent: its commands give it back.
    this.#onLost(reason, commands.length > 0);
    for (const command of commands) command.lost(reason);
  }
}

/** What was thrown while an answer was read ends its connection, and what waits for answers on it: nothing else. */
function unreadable(cause: unknown): Error {
  return cause instanceof ServerFault
    ? cause
    : new Error('the answer could not be read', { cause });
}
