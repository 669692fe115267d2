// Small commands: those whose answer is one packet, and the gateway's own statements.
import { decode } from './charsets.ts';
import { commandCodes, encodeCommand } from './command-packets.ts';
import { ServerFault } from './connect-failure.ts';
import type { Command, Connection } from './connection.ts';
import { type Column, packetMarkers, parseError, parseOk, type ServerError } from './packets.ts';
import { discardResults, QueryCommand, type QueryEvents, type ResultSink } from './query.ts';

/** Maximal answer to one of the gateway's own statements; the catalogue's are the longest. */
const maxCollectedBytes = 64 * 1024 * 1024;

/** MySQL's refusal as an Error, for callers that do not expect one. */
export class RefusedError extends Error {
  readonly errno: number;

  constructor(refusal: ServerError) {
    super(refusal.message);
    this.errno = refusal.errno;
  }
}

/** A command whose answer is a single packet: an error, or what `onAnswer` takes. */
class OnePacketCommand implements Command {
  readonly packet: Buffer;
  readonly #onAnswer: (payload: Buffer) => void;
  readonly #onFailure: (error: Error) => void;

  constructor(
    packet: Buffer,
    onAnswer: (payload: Buffer) => void,
    onFailure: (error: Error) => void,
  ) {
    this.packet = packet;
    this.#onAnswer = onAnswer;
    this.#onFailure = onFailure;
  }

  handlePacket(bytes: Buffer, start: number, end: number): boolean {
    if (bytes[start] === packetMarkers.error) {
      this.#onFailure(new RefusedError(parseError(bytes, start, end)));
    } else {
      this.#onAnswer(Buffer.from(bytes.subarray(start, end)));
    }
    return true;
  }

  lost(reason: Error): void {
    this.#onFailure(reason);
  }
}

/** MySQL's one-line status text (mysql_stat of the C API). */
export function fetchStatistics(connection: Connection): Promise<string> {
  return new Promise((resolve, reject) => {
    const packet = encodeCommand(commandCodes.statistics, '');
    const answer = (payload: Buffer) => resolve(payload.toString());
    connection.send(new OnePacketCommand(packet, answer, reject));
  });
}

/** Runs a statement and resolves with its rows' cells as text. A result that is too long ends the connection. */
export async function fetchRows(connection: Connection, sql: string): Promise<(string | null)[][]> {
  const rows: (string | null)[][] = [];
  await readRows(connection, sql, maxCollectedBytes, (cells) => rows.push(cells));
  return rows;
}

/** A small result with the names of its columns. */
export type Table = {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
};

/** As `fetchRows`, for results whose columns differ from version to version. */
export async function fetchTable(connection: Connection, sql: string): Promise<Table> {
  let columns: readonly string[] = [];
  const rows: (string | null)[][] = [];
  await readRows(
    connection,
    sql,
    maxCollectedBytes,
    (cells) => rows.push(cells),
    (found) => {
      columns = found.map(({ name }) => name.toString());
    },
  );
  return { columns, rows };
}

/**
 * Runs a statement and passes on its rows' cells as text, as they come.
 * @param maxBytes a longer result ends the connection
 */
export function readRows(
  connection: Connection,
  sql: string,
  maxBytes: number,
  take: (cells: (string | null)[]) => void,
  describe: (columns: readonly Column[]) => void = () => {},
): Promise<void> {
  let readBytes = 0;
  return new Promise((resolve, reject) => {
    const row: ResultSink['row'] = (bytes, start, end) => {
      readBytes += end - start;
      if (readBytes > maxBytes) {
        throw new ServerFault(
          'PROTOCOL_VIOLATION',
          "the server's answer to an internal statement is too long",
        );
      }
      take(cellsOf(bytes, start, end));
    };
    const sink = { ...discardResults, columns: describe, row };
    connection.send(new QueryCommand(sql, connection, sink, settle(resolve, reject)));
  });
}

/** Creates a command whose rows do not matter; `send` or `sendTogether` it. */
export type CommandFactory = (done: () => void, failed: (error: Error) => void) => Command;

/** A command whose answer is OK. */
export function onePacketCommand(code: number, argument: string): CommandFactory {
  return (done, failed) => {
    const answer = (payload: Buffer) => {
      expectOk(payload);
      done();
    };
    return new OnePacketCommand(encodeCommand(code, argument), answer, failed);
  };
}

/** @throws if it is another packet: the connection ends then */
function expectOk(payload: Buffer): void {
  if (payload[0] !== packetMarkers.ok) {
    throw new ServerFault(
      'PROTOCOL_VIOLATION',
      'the server answered a command with something else than OK',
    );
  }
  parseOk(payload, 0, payload.length);
}

/** A statement whose rows do not matter. */
export function statementCommand(sql: string, connection: Connection): CommandFactory {
  return (done, failed) => new QueryCommand(sql, connection, discardResults, settle(done, failed));
}

function settle(done: () => void, failed: (error: Error) => void): QueryEvents {
  return {
    answered: (_flagsClean, error) => (error === null ? done() : failed(new RefusedError(error))),
    lost: failed,
  };
}

/** A statement whose first row is wanted, to be sent with others. @param answered called once; null: there is no row, or the statement failed */
export function firstRowCommand(
  sql: string,
  connection: Connection,
  answered: (row: readonly (string | null)[] | null) => void,
): Command {
  let first: readonly (string | null)[] | null = null;
  const row: ResultSink['row'] = (bytes, start, end) => {
    first ??= cellsOf(bytes, start, end);
  };
  return new QueryCommand(
    sql,
    connection,
    { ...discardResults, row },
    {
      answered: (_flagsClean, error) => answered(error === null ? first : null),
      lost: () => answered(null),
    },
  );
}

/** Sends commands in one write. Resolves when all have succeeded, rejects with the first failure. */
export function runTogether(
  connection: Connection,
  factories: readonly CommandFactory[],
): Promise<void> {
  return new Promise((resolve, reject) => {
    let missing = factories.length;
    const done = () => {
      missing -= 1;
      if (missing === 0) resolve();
    };
    connection.sendTogether(factories.map((create) => create(done, reject)));
  });
}

/** Checks that the server answers (COM_PING). */
export function ping(connection: Connection): Promise<void> {
  return new Promise((resolve, reject) => {
    const packet = encodeCommand(commandCodes.ping, '');
    connection.send(new OnePacketCommand(packet, () => resolve(), reject));
  });
}

/**
 * The server's current status flags. The OK of COM_PING has them and, unlike a statement's, leaves the warnings. ROW_COUNT() is 0 then.
 */
export function fetchStatus(connection: Connection): Promise<number> {
  return new Promise((resolve, reject) => {
    const answer = (payload: Buffer) => resolve(parseOk(payload, 0, payload.length).status);
    connection.send(new OnePacketCommand(encodeCommand(commandCodes.ping, ''), answer, reject));
  });
}

/** Sends COM_QUIT; the server closes the connection. */
export function quit(connection: Connection): void {
  const ignore = () => {};
  connection.send(new OnePacketCommand(encodeCommand(commandCodes.quit, ''), ignore, ignore));
}

/** The cells of a row packet as text. @param charset MySQL's name of their character set; null: UTF-8 */
export function cellsOf(
  bytes: Buffer,
  start: number,
  end: number,
  charset: string | null = null,
): (string | null)[] {
  const cells: (string | null)[] = [];
  let position = start;
  while (position < end) {
    const first = bytes[position] as number;
    position += 1;
    if (first === 0xfb) {
      cells.push(null);
      continue;
    }
    // The first byte is the length up to 250; otherwise it says how many bytes the length has.
    const width = first < 0xfb ? 0 : first === 0xfc ? 2 : first === 0xfd ? 3 : 6;
    const size = width === 0 ? first : bytes.readUIntLE(position, width);
    position += first === 0xfe ? 8 : width;
    const cell = bytes.subarray(position, position + size);
    cells.push(charset === null ? cell.toString() : decode(cell, charset));
    position += size;
  }
  return cells;
}
