// The answer to COM_QUERY, packet by packet. The sink gets the bytes of rows. Handlers are named after the packets that they take.
import type { ColumnCache } from './column-cache.ts';
import { encodeQuery } from './command-packets.ts';
import { ServerFault } from './connect-failure.ts';
import type { Command, Connection } from './connection.ts';
import { type PacketsAhead, skipPackets } from './framing.ts';
import {
  type Column,
  inCharset,
  type OkPacket,
  packetMarkers,
  parseColumnCount,
  parseEofStatus,
  parseEofWarnings,
  parseError,
  parseOk,
  parseResultCharset,
  type ServerError,
  serverStatus,
} from './packets.ts';

/** Takes the results of one COM_QUERY in the order in which MySQL sends them. */
export interface ResultSink {
  /** A result set begins. `more`: further results follow it. */
  columns(columns: readonly Column[], more: boolean): void;
  /** The next result set has too many columns: `columns` gets none of them, and the sink must ignore its rows. */
  tooWide(): void;
  /** One row in the text protocol's form; the bytes are valid during the call only. */
  row(bytes: Buffer, start: number, end: number): void;
  /** Takes as many rows as it can at once; `row` gets the others. */
  rows?(ahead: PacketsAhead): void;
  /** The result set is complete. @param status the server's flags after it */
  endOfRows(status: number, warnings: number): void;
  /** A statement without result set succeeded. `more`: further results follow. */
  ok(ok: OkPacket, more: boolean): void;
}

/** Takes results and forgets them. */
export const discardResults: ResultSink = {
  columns: () => {},
  tooWide: () => {},
  row: () => {},
  endOfRows: () => {},
  ok: () => {},
};

/** A statement that returns no rows was answered by a result set. @throws always: the connection ends then */
export function refuseRows(): never {
  throw new ServerFault('PROTOCOL_VIOLATION', 'a statement without rows was answered by rows');
}

/** A complete result, for decisions after the answer. */
export type ResultNote = {
  readonly isResultSet: boolean;
  /** Whether a transaction was open after it. */
  readonly inTransaction: boolean;
  /** The number of its warnings. */
  readonly warnings: number;
};

/** Handlers of a query's end; exactly one is called, once. */
export interface QueryEvents {
  /**
   * The answer is complete.
   * @param flagsClean whether the server's flags say that the session is clean: no statement changed its state, no transaction is open,
   *   autocommit is on. An error has no flags: it is never clean.
   */
  answered(flagsClean: boolean, error: ServerError | null): void;
  /** The connection was lost before. */
  lost(reason: Error): void;
}

/** With fewer bytes ahead, taking several rows at once costs as much as it saves. */
const minRowsBytes = 512;
/** No set of column definitions is shorter. */
const minColumnsBytes = 24;
/** Two million definitions, more than any statement of usual length can ask for. */
const maxSkippedBytes = 64 * 1024 * 1024;
const noColumns: readonly Column[] = [];

type Stage = 'header' | 'column' | 'end of columns' | 'row';

/** One COM_QUERY on a connection. */
export class QueryCommand implements Command {
  readonly packet: Buffer;
  /** The complete results so far, in order. */
  readonly results: ResultNote[] = [];
  readonly #sql: string;
  #sink: ResultSink;
  readonly #columns: ColumnCache;
  readonly #events: QueryEvents;
  #stage: Stage = 'header';
  #columnCount = 0;
  /** Whether the current result has too many definitions, which are skipped. */
  #isTooWide = false;
  /** Number of skipped definitions of the current result, and their bytes. */
  #skipped = 0;
  #skippedBytes = 0;
  #stateChanged = false;
  #lastStatus = 0;
  /** The character_set_results that an earlier statement has set, if its text must be converted. */
  #charset: string | null = null;
  #isOver = false;
  #onOver: (() => void) | null = null;

  /**
   * @param connection the one that will send it
   * @param traceparent the statement's trace, for servers with query attributes; null: there is none
   */
  constructor(
    sql: string,
    connection: Pick<Connection, 'columns' | 'hasQueryAttributes'>,
    sink: ResultSink,
    events: QueryEvents,
    traceparent: string | null = null,
  ) {
    this.packet = encodeQuery(sql, connection.hasQueryAttributes, traceparent);
    this.#sql = sql;
    this.#columns = connection.columns;
    this.#sink = sink;
    this.#events = events;
  }

  lost(reason: Error): void {
    this.#isOver = true;
    this.#events.lost(reason);
    this.#onOver?.();
  }

  /** Drops all further results. Resolves when the answer has ended or the connection is lost. */
  discardResults(): Promise<void> {
    this.#sink = discardResults;
    if (this.#isOver) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onOver = resolve;
    });
  }

  get rowCells(): number {
    return this.#stage === 'row' ? this.#columnCount : 0;
  }

  get aheadFrom(): number {
    if (this.#stage === 'row') return minRowsBytes;
    return this.#stage === 'column' && (this.#columns.isEmpty || this.#isTooWide)
      ? minColumnsBytes
      : Number.POSITIVE_INFINITY;
  }

  takeAhead(ahead: PacketsAhead): void {
    if (this.#stage === 'row') this.#sink.rows?.(ahead);
    else if (this.#isTooWide) this.#skipAhead(ahead);
    else if (this.#columns.takeKnown(ahead, this.#columnCount)) this.#stage = 'end of columns';
  }

  /** @returns true if this packet is the last of the answer */
  handlePacket(bytes: Buffer, start: number, end: number): boolean {
    if (start === end)
      throw new ServerFault('PROTOCOL_VIOLATION', 'the server sent an empty packet');
    if (this.#stage === 'row') return this.#rowPacket(bytes, start, end);
    if (bytes[start] === packetMarkers.error) return this.#errorPacket(bytes, start, end);
    switch (this.#stage) {
      case 'header':
        return this.#headerPacket(bytes, start, end);
      case 'column':
        return this.#columnPacket(bytes, start, end);
      case 'end of columns':
        return this.#endOfColumnsPacket(bytes, start, end);
      default:
        this.#stage satisfies never;
        return true;
    }
  }

  /** Whether, by the last status flags, no transaction is open and autocommit is on. */
  get isSettled(): boolean {
    const settled = this.#lastStatus & (serverStatus.inTransaction | serverStatus.autocommit);
    return settled === serverStatus.autocommit;
  }

  #headerPacket(bytes: Buffer, start: number, end: number): boolean {
    if (bytes[start] === packetMarkers.ok) {
      const ok = parseOk(bytes, start, end);
      const more = (ok.status & serverStatus.moreResults) !== 0;
      this.#noteStatus(ok.status, false, ok.warnings);
      if (this.#stateChanged) this.#noteCharset(bytes, start, end);
      this.#sink.ok(ok, more);
      if (!more) this.#end(null);
      return !more;
    }
    if (bytes[start] === packetMarkers.localInfile) {
      throw new ServerFault('PROTOCOL_VIOLATION', 'the server asked for a local file');
    }
    this.#columnCount = parseColumnCount(bytes, start, end);
    if (this.#columnCount === 0) {
      throw new ServerFault('PROTOCOL_VIOLATION', 'the server announced a result without columns');
    }
    this.#columns.begin();
    this.#stage = 'column';
    this.#isTooWide = false;
    if (this.#columnCount > this.#columns.maxColumns) this.#beginSkipping();
    return false;
  }

  #columnPacket(bytes: Buffer, start: number, end: number): boolean {
    if (!this.#isTooWide && !this.#columns.admits(end - start)) this.#beginSkipping();
    if (this.#isTooWide) this.#skip(1, end - start);
    else if (this.#columns.add(bytes, start, end) === this.#columnCount) {
      this.#stage = 'end of columns';
    }
    return false;
  }

  /** Informs the sink at once, since it may stop the statement, and forgets the earlier definitions. */
  #beginSkipping(): void {
    this.#isTooWide = true;
    this.#skipped = this.#columns.forget();
    this.#skippedBytes = 0;
    this.#sink.tooWide();
  }

  /** This way half a million definitions cost a few milliseconds; delivered one by one, they cost half a second. */
  #skipAhead(ahead: PacketsAhead): void {
    const from = ahead.position;
    const count = skipPackets(ahead, this.#columnCount - this.#skipped);
    this.#skip(count, ahead.position - from);
  }

  #skip(count: number, bytes: number): void {
    this.#skipped += count;
    this.#skippedBytes += bytes;
    if (this.#skippedBytes > maxSkippedBytes) {
      throw new ServerFault('PROTOCOL_VIOLATION', 'the server sent too many column definitions');
    }
    if (this.#skipped >= this.#columnCount) this.#stage = 'end of columns';
  }

  /** The flags already say whether more results follow, so that the reply can open an array of results in time. */
  #endOfColumnsPacket(bytes: Buffer, start: number, end: number): boolean {
    const more = (parseEofStatus(bytes, start, end) & serverStatus.moreResults) !== 0;
    this.#stage = 'row';
    const columns = this.#isTooWide ? noColumns : this.#columns.finish(this.#sql);
    this.#sink.columns(this.#charset === null ? columns : inCharset(columns, this.#charset), more);
    return false;
  }

  #rowPacket(bytes: Buffer, start: number, end: number): boolean {
    const marker = bytes[start] as number;
    if (marker < packetMarkers.eof) {
      this.#sink.row(bytes, start, end);
      return false;
    }
    if (marker === packetMarkers.error) return this.#errorPacket(bytes, start, end);
    if (end - start >= 9) {
      this.#sink.row(bytes, start, end);
      return false;
    }
    return this.#endOfRowsPacket(bytes, start, end);
  }

  #endOfRowsPacket(bytes: Buffer, start: number, end: number): boolean {
    const status = parseEofStatus(bytes, start, end);
    const warnings = parseEofWarnings(bytes, start);
    this.#noteStatus(status, true, warnings);
    this.#stage = 'header';
    this.#sink.endOfRows(status, warnings);
    if ((status & serverStatus.moreResults) !== 0) return false;
    this.#end(null);
    return true;
  }

  #errorPacket(bytes: Buffer, start: number, end: number): boolean {
    this.#end(parseError(bytes, start, end, this.#charset));
    return true;
  }

  /** A state change counts for the whole answer; for the transaction the last flags count. */
  #noteStatus(status: number, isResultSet: boolean, warnings: number): void {
    const inTransaction = (status & serverStatus.inTransaction) !== 0;
    this.results.push({ isResultSet, inTransaction, warnings });
    if ((status & serverStatus.stateChanged) !== 0) this.#stateChanged = true;
    this.#lastStatus = status;
  }

  #noteCharset(bytes: Buffer, start: number, end: number): void {
    const charset = parseResultCharset(bytes, start, end);
    if (charset !== undefined) this.#charset = charset;
  }

  #end(error: ServerError | null): void {
    const flagsClean = error === null && !this.#stateChanged && this.isSettled;
    this.#isOver = true;
    this.#events.answered(flagsClean, error);
    this.#onOver?.();
  }
}
