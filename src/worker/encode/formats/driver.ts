// The JSON of the PlanetScale protocol: a result with its fields and rows, or MySQL's error, then the session.
import { performance } from 'node:perf_hooks';
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import type { Answer, SharedResults } from '../../execution/execution.ts';
import { type Failure, refusal } from '../../failure/failure.ts';
import { type CellRules, describeField } from '../columns.ts';
import { driverRowFrame, driverRowGrowth } from '../driver-rows.ts';
import { Format, type FormatChoice, type FormatOptions } from '../format.ts';
import { createReplyHead, jsonType } from '../head.ts';
import { ResultHeads } from '../result-rows.ts';
import { planRow } from '../rows.ts';
import { writeAscii, writeBytes } from '../text.ts';
import { type DriverError, describeDriverError } from './driver-error.ts';

/** The settings of the replies to one request. */
export type DriverReplyOptions = FormatOptions & {
  /** Returns the session after the statement as JSON; called at the end of the reply. */
  readonly session: () => string;
  /** Returns how many rows the reply to a write counts as affected. */
  readonly countRows: (ok: OkPacket) => number | bigint;
};

const head = createReplyHead(200, jsonType);
/** Cells leave as they come, except for their character set. */
const rawCells: CellRules = { numbersAsStrings: 'none', yearIsNumber: false, jsonIsValue: false };
const resultBegin = '{"result":{';

const severalResults = refusal(
  'SEVERAL_RESULTS',
  'The statement has more than one result set, and this protocol carries one.',
);

/** The error for a statement that is not stopped for it. */
const tooManyColumns: DriverError = {
  code: 'RESOURCE_EXHAUSTED',
  message:
    'The result has more columns than max_columns allows, or 4 MiB of definitions. The statement was executed.',
  outcome: 'partial',
};

/** Creates the heads of results. Keep them as long as possible: they remember the columns that were described. */
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
  return { head, create: (out, events) => new DriverJson(out, events, options) };
}

/** The members for a statement without results. Counts of 0 are missing, as in JSON of protocol buffers. */
function counts(rows: number | bigint, insertId: number | bigint): readonly string[] {
  return [
    ...(Number(rows) === 0 ? [] : [`"rowsAffected":"${rows}"`]),
    ...(Number(insertId) === 0 ? [] : [`"insertId":"${insertId}"`]),
  ];
}

/** The position in the reply. A reply that has begun to leave can still end with an error: clients look for one first. */
type Phase = 'empty' | 'in result' | 'in rows';

class DriverJson extends Format<DriverReplyOptions> {
  readonly #startedAt = performance.now();
  #phase: Phase = 'empty';
  /** Whether the result has members: the next one needs a comma. */
  #hasMembers = false;
  #resultSets = 0;
  #isTooWide = false;

  protected get isOneResult(): boolean {
    return this.#phase === 'in result';
  }

  columns(columns: readonly Column[]): void {
    this.#resultSets += 1;
    if (this.#resultSets === 2) this.refuse(severalResults);
    if (this.isRefused) return;
    this.#beginMember();
    this.results.begin(this.options.heads.find(columns), 'driver');
    this.#phase = 'in rows';
  }

  override tooWide(): void {
    if (this.isRefused) return;
    this.#isTooWide = true;
    super.tooWide();
  }

  endOfRows(): void {
    if (this.isRefused) return;
    writeAscii(this.out, ']');
    this.#phase = 'in result';
  }

  /** After the result sets of a CALL come the counts of its last statement. */
  ok(ok: OkPacket): void {
    if (this.isRefused) return;
    if (this.#phase === 'empty') this.#beginResult();
    for (const count of counts(this.options.countRows(ok), ok.insertId)) {
      this.#beginMember();
      writeAscii(this.out, count);
    }
  }

  override fitsRows(bytes: number): boolean {
    return this.out.heldRoom >= driverRowGrowth * bytes + driverRowFrame;
  }

  override restart(): boolean {
    if (!super.restart()) return false;
    this.#phase = 'empty';
    this.#hasMembers = false;
    this.#resultSets = 0;
    this.#isTooWide = false;
    return true;
  }

  override adopt(held: SharedResults): void {
    super.adopt(held);
    this.#phase = 'in result';
    this.#hasMembers = true;
  }

  finish({ failure }: Answer): boolean {
    const { isCut } = this.results;
    if (failure !== null) this.#writeError(describeDriverError(failure));
    else if (isCut) this.#writeError(this.#isTooWide ? tooManyColumns : this.#tooManyRows());
    else this.#writeEnd();
    this.out.end();
    return true;
  }

  override finishFailed(failure: Failure): boolean {
    this.#writeError(describeDriverError(failure));
    this.out.end();
    return true;
  }

  /** Clients of this protocol know no cut results: they would take the first rows for all rows. */
  #tooManyRows(): DriverError {
    const { maxRows } = this.options;
    return {
      code: 'RESOURCE_EXHAUSTED',
      message: `The result has more than max_rows = ${maxRows} rows, and this protocol cannot mark a result as cut: use LIMIT. The statement was executed.`,
      outcome: 'partial',
    };
  }

  #writeEnd(): void {
    if (this.#phase === 'empty') this.#beginResult();
    const seconds = (performance.now() - this.#startedAt) / 1000;
    writeAscii(this.out, `},"timing":${seconds.toFixed(6)}`);
    this.#writeSession();
  }

  /** Replaces the results with an error, or adds it after them if they have begun to leave. */
  #writeError(error: DriverError): void {
    const out = this.out;
    const isBegun = !this.restart();
    if (isBegun) writeAscii(out, this.#phase === 'in rows' ? ']},' : '},');
    else writeAscii(out, '{');
    writeBytes(out, Buffer.from(`"error":${JSON.stringify(error)}`));
    this.#writeSession();
  }

  #writeSession(): void {
    writeAscii(this.out, `,"session":${this.options.session()}}`);
  }

  #beginResult(): void {
    writeAscii(this.out, resultBegin);
    this.#phase = 'in result';
  }

  #beginMember(): void {
    if (this.#phase === 'empty') this.#beginResult();
    if (this.#hasMembers) writeAscii(this.out, ',');
    this.#hasMembers = true;
  }
}
