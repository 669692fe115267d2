// The JSON of /v1/query: described columns, rows as arrays or objects, and a summary at the end.
import { errorName } from '../../../shared/mysql/error-names.ts';
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import type { Answer, ServerWarning, SharedResults } from '../../execution/execution.ts';
import { type AnyFailure, refusal, type ServerFailure } from '../../failure/failure.ts';
import { Format, type FormatChoice, type FormatOptions } from '../format.ts';
import { createReplyHead, jsonType, varyByAccept, withHeaders } from '../head.ts';
import type { ResultHead, ResultHeads } from '../result-rows.ts';
import { writeAscii, writeBytes } from '../text.ts';
import { withoutPlace, writeProblem } from './problem.ts';

/** The settings of the replies to one request. */
export type V1ReplyOptions = FormatOptions & {
  /** The section's name as JSON, in ASCII. */
  readonly section: string;
  /** Has only characters that JSON does not escape. */
  readonly requestId: string;
  /**
   * For each statement, whether the format renames columns of the same name in objects. Otherwise it refuses the reply, which must not
   * happen to a statement that was executed. Missing: for none.
   */
  readonly renames?: readonly boolean[];
  /** For each statement, whether its warnings are listed. Missing: for none. */
  readonly listsWarnings?: readonly boolean[];
  /** Whether the gateway undoes the statement. */
  readonly isDryRun: boolean;
  /** Whether the reply is kept with an idempotency key. */
  readonly isKept: boolean;
  /** Whether any number of rows but one is a failure. Nothing of the reply may leave before its end then. Missing: it is not. */
  readonly needsOneRow?: boolean;
  /** Makes a failure of MySQL's the whole reply; missing: as a problem. */
  readonly writeFailure?: typeof writeProblem;
};

const head = createReplyHead(200, jsonType, varyByAccept);

const noRow = refusal('NO_ROW', 'There is no such row.');
const notOneRow = refusal('NOT_ONE_ROW', 'There is more than one row, but one was expected.');

/** The reply to one statement. */
export function chooseV1Json(options: V1ReplyOptions): FormatChoice {
  return { head, create: (out, events) => new V1Json(out, events, options) };
}

/** Writes one result as an object. Several results, which a CALL has, are objects in `results`. */
export class V1Json<Options extends V1ReplyOptions = V1ReplyOptions> extends Format<Options> {
  protected isSeveral = false;
  /** The current statement's number in the request. */
  protected statement = 0;
  /** The warnings of the current statement, as a member of an object; '' if they are not listed. */
  protected warningList = '';
  /** Complete results of the statement so far. */
  #resultCount = 0;
  /** Rows of the results before the current one. */
  #countBefore = 0;
  /** The begins and ends of rows, in turn, in a reply that is kept. */
  #rowBounds: number[] = [];
  /** The end of the reply is written. */
  #isComplete = false;

  protected get isOneResult(): boolean {
    return !this.isSeveral;
  }

  columns(columns: readonly Column[], more: boolean): void {
    const found = this.chooseHead(this.options.heads, columns);
    if (found === null) return;
    this.#beginResult(more);
    this.results.begin(found);
    this.#noteRowBound();
    this.#countBefore = this.results.count;
  }

  /** Returns null if the reply is refused, since columns of the same name cannot be keys of one object. */
  protected chooseHead(heads: ResultHeads, columns: readonly Column[]): ResultHead | null {
    const found = heads.find(columns);
    if (found.clash !== undefined && this.options.renames?.[this.statement] !== true) {
      this.refuse(found.clash.failure);
    }
    return this.isRefused ? null : (found.clash?.renamed ?? found);
  }

  endOfRows(_status: number, warnings: number): void {
    this.checkOneRow();
    if (this.isRefused) return;
    const { count, isCut } = this.results;
    this.#noteRowBound();
    const rows = count - this.#countBefore;
    writeAscii(this.out, `],"row_count":${rows},"truncated":${isCut},"warnings":${warnings}`);
    this.#endResult();
  }

  ok({ affectedRows, insertId, warnings }: OkPacket, more: boolean): void {
    if (this.isRefused) return;
    this.#beginResult(more);
    const id = insertId === 0 ? 'null' : `"${insertId}"`;
    writeAscii(
      this.out,
      `{"affected_rows":${affectedRows},"insert_id":${id},"warnings":${warnings}`,
    );
    this.#endResult();
  }

  override restart(): boolean {
    if (!super.restart()) return false;
    this.#rowBounds = [];
    this.#isComplete = false;
    this.statement = 0;
    this.beginStatement();
    return true;
  }

  /** Rows beyond the first are left out, so that a result of any size takes no memory. */
  protected checkOneRow(): void {
    if (this.options.needsOneRow !== true || this.isRefused) return;
    const { count, isCut } = this.results;
    if (count === 0) this.refuse(noRow);
    else if (count > 1 || isCut) this.refuse(notOneRow);
  }

  /** The results that come next are those of a statement that has none yet. */
  protected beginStatement(): void {
    this.isSeveral = false;
    this.warningList = '';
    this.#resultCount = 0;
  }

  listWarnings(warnings: readonly ServerWarning[]): void {
    this.warningList = `,"warning_list":${JSON.stringify(warnings.map(describeWarning))}`;
  }

  override adopt(held: SharedResults): void {
    super.adopt(held);
    this.#resultCount = 1;
    this.checkOneRow();
  }

  /** A failure replaces the reply, unless some of it has left. */
  finish({ failure }: Answer): boolean {
    if (failure === null) this.#complete();
    else if (!this.restart()) return this.endFailed(this.locate(failure));
    else {
      const { writeFailure = writeProblem, requestId } = this.options;
      writeFailure(this.out, this.locate(failure), requestId);
    }
    this.out.end();
    return true;
  }

  protected locate(failure: ServerFailure): AnyFailure {
    return withoutPlace(failure);
  }

  /** Nothing marks a document that breaks off as failed. */
  protected endFailed(_failure: AnyFailure): boolean {
    return false;
  }

  seal(maxBytes: number): Buffer {
    this.#complete();
    const reply = this.out.written;
    return reply.length > maxBytes ? this.omitRows(reply) : reply;
  }

  /** The reply without its rows. */
  protected omitRows(reply: Buffer): Buffer {
    return omitRows(reply, this.#rowBounds);
  }

  /** The begins and ends of rows so far, in turn, which count no more. */
  protected takeRowBounds(): readonly number[] {
    return this.#rowBounds.splice(0);
  }

  replay(kept: Buffer, isRepeated: boolean): void {
    const { out } = this;
    this.restart();
    writeBytes(out, kept);
    if (isRepeated) out.head = withHeaders(out.head, ['Idempotency-Replayed', 'true']);
    this.#isComplete = true;
  }

  #complete(): void {
    if (!this.#isComplete) this.writeEnd();
    this.#isComplete = true;
  }

  protected writeEnd(): void {
    const { section, requestId, isDryRun } = this.options;
    const undone = isDryRun ? '"rolled_back":true,' : '';
    this.endResults();
    writeAscii(this.out, `,${undone}"request_id":"${requestId}","section":${section}}`);
  }

  /** Ends the results of the statement, except for its last brace. */
  protected endResults(): void {
    if (this.isSeveral) writeAscii(this.out, ']');
    if (this.warningList !== '') writeBytes(this.out, Buffer.from(this.warningList));
  }

  #noteRowBound(): void {
    if (this.options.isKept) this.#rowBounds.push(this.out.length);
  }

  #beginResult(more: boolean): void {
    if (this.#resultCount === 0 && more) {
      this.isSeveral = true;
      writeAscii(this.out, '{"results":[');
    } else if (this.#resultCount > 0) {
      if (!this.isSeveral) throw new Error('a further result came unannounced');
      writeAscii(this.out, ',');
    }
  }

  #endResult(): void {
    if (this.isSeveral) writeAscii(this.out, '}');
    this.#resultCount += 1;
  }
}

function describeWarning({ level, errno, message }: ServerWarning): object {
  return { level, code: errorName(errno), errno, message };
}

/** The reply without its rows, with a note of that; or as it is if it has none. @param bounds begins and ends in turn */
export function omitRows(reply: Buffer, bounds: readonly number[]): Buffer {
  const parts: Buffer[] = [];
  let from = 0;
  let omitted = 0;
  for (const [index, at] of bounds.entries()) {
    const isBegin = index % 2 === 0;
    if (isBegin) parts.push(reply.subarray(from, at));
    else omitted += at - from;
    from = at;
  }
  if (omitted === 0) return reply;
  parts.push(reply.subarray(from, reply.length - 1), Buffer.from(',"rows_omitted":true}'));
  return Buffer.concat(parts);
}
