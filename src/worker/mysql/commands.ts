// The small commands: those whose answer is one packet, and statements whose rows are not wanted.
// Must not know the pool or who asks.
import type { ColumnCache } from './column-cache.ts';
import { commandCodes, encodeCommand } from './command-packets.ts';
import type { Command, Connection } from './connection.ts';
import { packetMarkers, parseError, type ServerError } from './packets.ts';
import { discardResults, QueryCommand, type QueryOwner, type ResultSink } from './query.ts';
import { ServerFault } from './server-fault.ts';

/** The answers to the gateway's own questions are small; a catalogue's are the longest. */
const mostCollectedBytes = 64 * 1024 * 1024;

/** MySQL's refusal as an Error, for where a refusal is not an expected answer. */
export class RefusedError extends Error {
  readonly errno: number;

  constructor(refusal: ServerError) {
    super(refusal.message);
    this.errno = refusal.errno;
  }
}

/** A command whose answer is a single packet. */
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

/** Runs a statement and resolves with its rows' cells as text. Small results only: what is endless ends the connection. */
export function fetchRows(connection: Connection, sql: string): Promise<(string | null)[][]> {
  return new Promise((resolve, reject) => {
    const rows: (string | null)[][] = [];
    const sink = { ...discardResults, row: collectInto(rows) };
    const owner = settle(() => resolve(rows), reject);
    connection.send(new QueryCommand(sql, connection.columns, sink, owner));
  });
}

/** Creates a command without rows of interest; `send` or `sendTogether` it. */
export type CommandFactory = (done: () => void, failed: (error: Error) => void) => Command;

/** A command whose answer is one packet, OK or not. */
export function onePacketCommand(code: number, argument: string): CommandFactory {
  return (done, failed) => new OnePacketCommand(encodeCommand(code, argument), done, failed);
}

/** A statement of which only success or failure matters. */
export function statementCommand(sql: string, columns: ColumnCache): CommandFactory {
  return (done, failed) => new QueryCommand(sql, columns, discardResults, settle(done, failed));
}

function settle(done: () => void, failed: (error: Error) => void): QueryOwner {
  return {
    answered: (_flagsClean, error) => (error === null ? done() : failed(new RefusedError(error))),
    lost: failed,
  };
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

/** Asks whether the server is there (COM_PING). */
export function ping(connection: Connection): Promise<void> {
  return new Promise((resolve, reject) => {
    const packet = encodeCommand(commandCodes.ping, '');
    connection.send(new OnePacketCommand(packet, () => resolve(), reject));
  });
}

/** Says goodbye (COM_QUIT) and closes. */
export function quit(connection: Connection): void {
  const ignore = () => {};
  connection.send(new OnePacketCommand(encodeCommand(commandCodes.quit, ''), ignore, ignore));
}

function collectInto(rows: (string | null)[][]): ResultSink['row'] {
  let collected = 0;
  return (bytes, start, end) => {
    collected += end - start;
    if (collected > mostCollectedBytes) {
      throw new ServerFault(
        'PROTOCOL_VIOLATION',
        'the server answered a small question without end',
      );
    }
    const cells: (string | null)[] = [];
    let position = start;
    while (position < end) {
      const length = bytes[position] as number;
      if (length === 0xfb) {
        cells.push(null);
        position += 1;
      } else {
        const [from, size] =
          length === 0xfc
            ? [position + 3, bytes.readUInt16LE(position + 1)]
            : [position + 1, length];
        cells.push(bytes.toString('utf8', from, from + size));
        position = from + size;
      }
    }
    rows.push(cells);
  };
}
