// The JSON of a named statement with one row: that row as an object, and nothing else.
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import type { FormatChoice } from '../format.ts';
import { createReplyHead, jsonType, varyByAccept } from '../head.ts';
import { V1Json, type V1ReplyOptions } from './v1-json.ts';

const head = createReplyHead(200, jsonType, varyByAccept);

/** The row of one statement. @param options with heads that write nothing before the rows */
export function chooseNamedOne(options: V1ReplyOptions): FormatChoice {
  return {
    head,
    isWhole: true,
    create: (out, events) => new NamedOne(out, events, { ...options, needsOneRow: true }),
  };
}

class NamedOne extends V1Json {
  #hasRows = false;

  /** A CALL may have further results, which are left out. */
  override columns(columns: readonly Column[]): void {
    if (this.#hasRows) this.results.skipNext();
    this.#hasRows = true;
    const found = this.chooseHead(this.options.heads, columns);
    if (found !== null) this.results.begin(found);
  }

  override endOfRows(): void {
    this.checkOneRow();
  }

  override ok(_ok: OkPacket): void {
    this.checkOneRow();
  }

  override restart(): boolean {
    this.#hasRows = false;
    return super.restart();
  }

  protected override writeEnd(): void {}

  override seal(maxBytes: number): Buffer {
    const reply = super.seal(Number.POSITIVE_INFINITY);
    return reply.length > maxBytes ? Buffer.from('{"rows_omitted":true}') : reply;
  }
}
