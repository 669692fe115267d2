// The JSON of a named statement with one row: that row as an object, and nothing else; or an array, with its columns.
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import type { FormatChoice } from '../format.ts';
import { createReplyHead, jsonType, varyByAccept } from '../head.ts';
import { writeAscii } from '../text.ts';
import { V1Json, type V1ReplyOptions } from './v1-json.ts';

const head = createReplyHead(200, jsonType, varyByAccept);

/** `isBare`: the reply is the row, and nothing else. */
export type NamedOneOptions = V1ReplyOptions & { readonly isBare: boolean };

/** The row of one statement. @param options with heads of `createOneHeads` */
export function chooseNamedOne(options: NamedOneOptions): FormatChoice {
  return {
    head,
    isWhole: true,
    create: (out, events) => new NamedOne(out, events, { ...options, needsOneRow: true }),
  };
}

class NamedOne extends V1Json<NamedOneOptions> {
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

  protected override writeEnd(): void {
    if (!this.options.isBare) writeAscii(this.out, `,${this.#about()}`);
  }

  /** The end of the object that has the row, as members. */
  #about(): string {
    const { section, requestId } = this.options;
    return `"request_id":"${requestId}","section":${section}}`;
  }

  override seal(maxBytes: number): Buffer {
    const reply = super.seal(Number.POSITIVE_INFINITY);
    if (reply.length <= maxBytes) return reply;
    const omitted = '{"rows_omitted":true';
    return Buffer.from(this.options.isBare ? `${omitted}}` : `${omitted},${this.#about()}`);
  }
}
