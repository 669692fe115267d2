// The JSON of the PlanetScale protocol: a result with its fields and rows, or MySQL's error, and the session behind it.
// Must not know HTTP, the pool or how bytes leave.
import { performance } from 'node:perf_hooks';
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import type { Answer, SharedResults } from '../../execution/execution.ts';
import { type Failure, refusal } from '../../failure/failure.ts';
import type { CellRules } from '../column-kinds.ts';
import { driverRowFrame, driverRowGrowth } from '../driver-rows.ts';
import type { Format, FormatChoice, FormatEvents } from '../format.ts';
import { createReplyHead, jsonType } from '../head.ts';
import { ResultHeads } from '../result-heads.ts';
import { ResultRows, type RowLimits } from '../result-rows.ts';
import { planRow } from '../rows.ts';
import { writeAscii, writeBytes } from '../text.ts';
import { describeField } from '../vitess-fields.ts';
import type { ReplyWriter } from '../writer.ts';
import { type DriverError, describeDriverError } from './driver-error.ts';

/** What the replies to one request depend on. */
export type DriverReplyOptions = RowLimits & {
  readonly heads: ResultHeads;
  /** The session as JSON, as it is after the statement: asked for at the end of the reply. */
  readonly session: () => string;
  /** How many rows a write is told to have affected. */
  readonly countRows: (ok: OkPacket) => number | bigint;
};

const head = createReplyHead(200, jsonType);
/** Cells leave as they come: character sets alone matter. */
const rawCells: CellRules = { numbersAsStrings: 'none', yearIsNumber: false, jsonIsValue: false };
const resultBegin = '{"result":{';
/** What a reply takes beyond its head and rows, session and error aside. */
const frameBytes = 128;

const severalResults = refusal(
  'SEVERAL_RESULTS',
  'The statement has more than one result set, and this protocol carries one.',
);

/** The statement was one that is not stopped. */
const tooManyColumns: DriverError = {
  code: 'RESOURCE_EXHAUSTED',
  message:
    'The result has more columns than max_columns allows, or 4 MiB of definitions. The statement was executed.',
  outcome: 'partial',
};

/** Creates what stands before rows: to be kept for as long as possible. */
export function createDriverHeads(): ResultHeads {
  return new ResultHeads((columns) => {
    const plan = planRow(columns, rawCells);
    const fields = columns.map((column, at) => {
      const conversion = plan.conversions[at] ?? null;
      return describeField(column, conversion !== null && 'charset' in conversion);
    });
    return { bytes: Buffer.from(`"fields":${JSON.stringify(fields)},"rows":[`), plan };
  });
}

/** One statement's reply. */
export function chooseDriverJson(options: DriverReplyOptions): FormatChoice {
  return { head, create: (out, events) => new DriverJson(out, options, events) };
}

/** What is told of a statement without results: counts that are 0 are missing, as in JSON of protocol buffers. */
function counts(rows: number | bigint, insertId: number | bigint): readonly string[] {
  return [
    ...(Number(rows) === 0 ? [] : [`"rowsAffected":"${rows}"`]),
    ...(Number(insertId) === 0 ? [] : [`"insertId":"${insertId}"`]),
  ];
}

/** Where a reply is. What has begun to leave can still end with an error: clients look for one first. */
type Phase = 'empty' | 'in result' | 'in rows';

class DriverJson implements Format {
  readonly #out: ReplyWriter;
  readonly #options: DriverReplyOptions;
  readonly #events: FormatEvents;
  readonly #rows: ResultRows;
  readonly #startedAt = performance.now();
  #phase: Phase = 'empty';
  /** Whether the result has members: the next one needs a comma. */
  #hasMembers = false;
  #resultSets = 0;
  /** There can be no reply: what comes is forgotten. */
  #isRefused = false;
  #isTooWide = false;

  constructor(out: ReplyWriter, options: DriverReplyOptions, events: FormatEvents) {
    this.#out = out;
    this.#options = options;
    this.#events = events;
    this.#rows = new ResultRows(out, options, null, events, 'driver');
  }

  get rowCount(): number {
    return this.#rows.count;
  }

  columns(columns: readonly Column[]): void {
    this.#resultSets += 1;
    if (this.#resultSets === 2) this.#refuse(severalResults);
    if (this.#isRefused) return;
    const { bytes, plan } = this.#options.heads.find(columns);
    this.#beginMember();
    writeBytes(this.#out, bytes);
    this.#rows.begin(plan);
    this.#phase = 'in rows';
  }

  tooWide(): void {
    if (this.#isRefused) return;
    this.#isTooWide = true;
    this.#rows.skipNext();
    this.#events.replyTooWide();
  }

  row(bytes: Buffer, start: number, end: number): void {
    if (!this.#isRefused) this.#rows.writeOne(bytes, start, end);
  }

  endOfRows(): void {
    if (this.#isRefused) return;
    writeAscii(this.#out, ']');
    this.#phase = 'in result';
  }

  /** Behind the result sets of a CALL stands what its last statement did. */
  ok(ok: OkPacket): void {
    if (this.#isRefused) return;
    if (this.#phase === 'empty') this.#beginResult();
    for (const count of counts(this.#options.countRows(ok), ok.insertId)) {
      this.#beginMember();
      writeAscii(this.#out, count);
    }
  }

  get totalBytes(): number {
    return this.#out.totalBytes;
  }

  get hasLeft(): boolean {
    return this.#out.committed;
  }

  fitsColumns(columns: readonly Column[]): boolean {
    return this.#out.heldRoom >= this.#options.heads.find(columns).bytes.length + frameBytes;
  }

  fitsRows(bytes: number): boolean {
    return this.#out.heldRoom >= driverRowGrowth * bytes + driverRowFrame;
  }

  restart(): boolean {
    if (this.#out.committed) return false;
    this.#out.rollback(0);
    this.#phase = 'empty';
    this.#hasMembers = false;
    this.#resultSets = 0;
    this.#isRefused = false;
    this.#isTooWide = false;
    this.#rows.restart();
    return true;
  }

  held(): SharedResults | null {
    const out = this.#out;
    if (out.committed || this.#isRefused || this.#rows.isTooLarge || this.#phase !== 'in result') {
      return null;
    }
    const bytes = out.bytes.subarray(0, out.length);
    return { bytes, rows: this.rowCount, isTruncated: this.#rows.isCut };
  }

  adopt({ bytes, rows, isTruncated }: SharedResults): void {
    writeBytes(this.#out, bytes);
    this.#rows.count = rows;
    this.#rows.isCut = isTruncated;
    this.#phase = 'in result';
    this.#hasMembers = true;
  }

  finish({ failure }: Answer): boolean {
    const { isCut } = this.#rows;
    if (failure !== null) this.#writeError(describeDriverError(failure));
    else if (isCut) this.#writeError(this.#isTooWide ? tooManyColumns : this.#tooManyRows());
    else this.#writeEnd();
    this.#out.end();
    return true;
  }

  finishFailed(failure: Failure): boolean {
    this.#writeError(describeDriverError(failure));
    this.#out.end();
    return true;
  }

  /** A client of this protocol knows of no results that are cut: it would take the first rows for all. */
  #tooManyRows(): DriverError {
    const { maxRows } = this.#options;
    return {
      code: 'RESOURCE_EXHAUSTED',
      message: `The result has more than max_rows = ${maxRows} rows, and this protocol cannot tell a part from the whole: use LIMIT. The statement was executed.`,
      outcome: 'partial',
    };
  }

  #writeEnd(): void {
    if (this.#phase === 'empty') this.#beginResult();
    const seconds = (performance.now() - this.#startedAt) / 1000;
    writeAscii(this.#out, `},"timing":${seconds.toFixed(6)}`);
    this.#writeSession();
  }

  /** In the place of the results; or behind them, where they have begun to leave. */
  #writeError(error: DriverError): void {
    const out = this.#out;
    const isBegun = !this.restart();
    if (isBegun) writeAscii(out, this.#phase === 'in rows' ? ']},' : '},');
    else writeAscii(out, '{');
    writeBytes(out, Buffer.from(`"error":${JSON.stringify(error)}`));
    this.#writeSession();
  }

  #writeSession(): void {
    writeAscii(this.#out, `,"session":${this.#options.session()}}`);
  }

  #refuse(failure: Failure): void {
    this.#isRefused = true;
    this.#events.replyRefused(failure);
  }

  #beginResult(): void {
    writeAscii(this.#out, resultBegin);
    this.#phase = 'in result';
  }

  #beginMember(): void {
    if (this.#phase === 'empty') this.#beginResult();
    if (this.#hasMembers) writeAscii(this.#out, ',');
    this.#hasMembers = true;
  }
}
