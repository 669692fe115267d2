// Prepared statements: the server parses a text, resolves its names and describes the columns of its result, and runs nothing.
import { commandCodes, encodeCommand } from './command-packets.ts';
import { ServerFault } from './connect-failure.ts';
import type { Command, Connection } from './connection.ts';
import { headerBytes } from './framing.ts';
import {
  type Column,
  packetMarkers,
  parseColumn,
  parseEofStatus,
  parseError,
  type ServerError,
} from './packets.ts';

/** The server's answer to a text. No columns: it gives no rows, or the server does not know before it runs. */
export type Prepared =
  | { readonly ok: true; readonly id: number; readonly columns: readonly Column[] }
  | { readonly ok: false; readonly error: ServerError };

/** The counts of columns and parameters (COM_STMT_PREPARE_OK of the MySQL protocol). */
const okBytes = { id: 1, columns: 5, parameters: 7, end: 9 } as const;

/** One COM_STMT_PREPARE: an OK with counts, the definitions of the parameters and their end, those of the columns and theirs. */
class PrepareCommand implements Command {
  readonly packet: Buffer;
  readonly #extended: boolean;
  readonly #answered: (prepared: Prepared) => void;
  readonly #lost: (reason: Error) => void;
  #id = 0;
  /** Packets of parameters that are still to come, with their end. */
  #skipped = 0;
  /** Definitions of columns that are still to come; their end follows. */
  #missing: number | null = null;
  readonly #columns: Column[] = [];

  constructor(
    sql: string,
    extended: boolean,
    answered: (prepared: Prepared) => void,
    lost: (reason: Error) => void,
  ) {
    this.packet = encodeCommand(commandCodes.prepare, sql);
    this.#extended = extended;
    this.#answered = answered;
    this.#lost = lost;
  }

  handlePacket(bytes: Buffer, start: number, end: number): boolean {
    if (this.#missing === null) return this.#firstPacket(bytes, start, end);
    if (this.#skipped > 0) {
      this.#skipped -= 1;
      return this.#endIf(this.#skipped === 0 && this.#missing === 0);
    }
    if (this.#missing > 0) {
      this.#missing -= 1;
      this.#columns.push(parseColumn(bytes, start, end, this.#extended));
      return false;
    }
    parseEofStatus(bytes, start, end);
    return this.#endIf(true);
  }

  lost(reason: Error): void {
    this.#lost(reason);
  }

  #firstPacket(bytes: Buffer, start: number, end: number): boolean {
    if (bytes[start] === packetMarkers.error) {
      this.#answered({ ok: false, error: parseError(bytes, start, end) });
      return true;
    }
    if (bytes[start] !== packetMarkers.ok || end - start < okBytes.end) {
      throw new ServerFault(
        'PROTOCOL_VIOLATION',
        'the server did not answer a PREPARE with its OK',
      );
    }
    this.#id = bytes.readUInt32LE(start + okBytes.id);
    this.#missing = bytes.readUInt16LE(start + okBytes.columns);
    const parameters = bytes.readUInt16LE(start + okBytes.parameters);
    this.#skipped = parameters === 0 ? 0 : parameters + 1;
    return this.#endIf(this.#skipped === 0 && this.#missing === 0);
  }

  #endIf(isOver: boolean): boolean {
    if (isOver) this.#answered({ ok: true, id: this.#id, columns: this.#columns });
    return isOver;
  }
}

/**
 * Prepares one statement (COM_STMT_PREPARE). The caller must close it, by `closePrepared` or with its session. Rejects if the connection
 * is lost.
 */
export function prepare(connection: Connection, sql: string): Promise<Prepared> {
  return new Promise((resolve, reject) => {
    connection.send(new PrepareCommand(sql, connection.hasExtendedMetadata, resolve, reject));
  });
}

/** Closes prepared statements. Resolves when the server has done so; rejects if the connection is lost. */
export function closePrepared(connection: Connection, ids: readonly number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    connection.send(new CloseCommand(ids, resolve, reject));
  });
}

/** COM_STMT_CLOSE has no answer: a COM_PING behind it in the same write has one. */
class CloseCommand implements Command {
  readonly packet: Buffer;
  readonly #done: () => void;
  readonly #lost: (reason: Error) => void;

  constructor(ids: readonly number[], done: () => void, lost: (reason: Error) => void) {
    const closings = ids.map((id) => {
      const packet = Buffer.alloc(headerBytes + 5);
      packet.writeUIntLE(5, 0, 3);
      packet[headerBytes] = commandCodes.closeStatement;
      packet.writeUInt32LE(id, headerBytes + 1);
      return packet;
    });
    this.packet = Buffer.concat([...closings, encodeCommand(commandCodes.ping, '')]);
    this.#done = done;
    this.#lost = lost;
  }

  handlePacket(bytes: Buffer, start: number): boolean {
    if (bytes[start] !== packetMarkers.ok) {
      throw new ServerFault('PROTOCOL_VIOLATION', 'the server did not answer a PING with its OK');
    }
    this.#done();
    return true;
  }

  lost(reason: Error): void {
    this.#lost(reason);
  }
}
