// The WebAssembly module that writes many rows in one call (its source is in webassembly/), and its memory.
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import type { RowKeys, RowPlan } from './rows.ts';
import { type ReplyWriter, slackBytes, streamBytes } from './writer.ts';

// Rows of ten columns and 250 bytes: 46 ns each, against 390 ns one by one in JavaScript; the gateway's CPU for
// 25 MB went from 48 ms to 23 ms, for 1,000 rows from 0.49 ms to 0.25 ms (bulk and thousand of scripts/bench).
//
//     | the module's own | result | kinds | arena: bytes read | copies | scratch: bytes written | keys |
//
// The memory never grows, so views of it stay valid. Rows are written to the scratch and copied to the reply, which may be in any buffer;
// the copy takes a twentieth of the time of writing. The system provides only the pages that are used.
const pageBytes = 64 * 1024;
const comma = 0x2c;
const lineFeed = 0x0a;
const resultOffset = 4096;
const kindsOffset = 8192;
/** MySQL's limit. */
const maxColumns = 4096;
const arenaOffset = 16 * 1024;
/** Bytes that were not read into the arena, since they came through TLS, are copied here. */
const copiesBytes = 64 * 1024;
const scratchBytes = streamBytes + slackBytes;
const keysBytes = 64 * 1024;
/** The module reads, and may write, a few bytes beyond each area. */
const gapBytes = 1024;

/**
 * How rows are separated: `list` is JSON with commas between rows, `lines` JSON with a line feed after each, `csv` records of CSV,
 * `driver` objects of lengths and base64 with commas between them.
 */
export type RowFraming = 'list' | 'lines' | 'csv' | 'driver';

/** Row packets to write in one call, and the limits of the call. */
export type RowOrder = {
  readonly ahead: PacketsAhead;
  readonly plan: RowPlan;
  readonly framing: RowFraming;
  /** Whether a row precedes these, so that a comma is needed. */
  readonly needsComma: boolean;
  readonly maxRows: number;
  /** No row begins beyond this length of the writer. */
  readonly stopLength: number;
};

type WriteRows = (
  from: number,
  end: number,
  sequence: number,
  to: number,
  stop: number,
  room: number,
  kinds: number,
  columns: number,
  maxRows: number,
  separator: number,
  needsSeparator: boolean,
  keys: number,
  result: number,
) => void;

type WriteRecords = (
  from: number,
  end: number,
  sequence: number,
  to: number,
  stop: number,
  room: number,
  kinds: number,
  columns: number,
  maxRows: number,
  result: number,
) => void;

/** Only the types of browsers declare it. */
declare const WebAssembly: {
  readonly Memory: new (size: { initial: number; maximum: number }) => { buffer: ArrayBuffer };
  readonly Module: new (code: Buffer) => object;
  readonly Instance: new (
    module: object,
    imports: { env: { memory: object } },
  ) => { exports: { writeRows: WriteRows; writeRecords: WriteRecords } };
};

/** The module; each worker has one. */
export class RowModule {
  /** Sockets should read into it. */
  readonly arena: Buffer;
  readonly #memory: Buffer;
  readonly #result: Uint32Array;
  readonly #copiesOffset: number;
  readonly #scratchOffset: number;
  readonly #keysOffset: number;
  readonly #writeRows: WriteRows;
  readonly #writeRecords: WriteRecords;
  /** The kinds in the memory now. */
  #kinds: Uint8Array | null = null;
  #keys: Buffer | null = null;

  /**
   * @param code the compiled webassembly/
   * @throws if WebAssembly, its SIMD instructions or its address space are not available
   */
  constructor(code: Buffer, arenaBytes: number) {
    this.#copiesOffset = arenaOffset + arenaBytes + gapBytes;
    this.#scratchOffset = this.#copiesOffset + copiesBytes + gapBytes;
    this.#keysOffset = this.#scratchOffset + scratchBytes + gapBytes;
    const pages = Math.ceil((this.#keysOffset + keysBytes + gapBytes) / pageBytes);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    const instance = new WebAssembly.Instance(new WebAssembly.Module(code), { env: { memory } });
    this.#writeRows = instance.exports.writeRows;
    this.#writeRecords = instance.exports.writeRecords;
    this.#memory = Buffer.from(memory.buffer);
    this.#result = new Uint32Array(memory.buffer, resultOffset, 3);
    this.arena = this.#memory.subarray(arenaOffset, arenaOffset + arenaBytes);
  }

  /**
   * Writes the rows of as many packets as possible, and moves `ahead` past them. The caller handles the next packet by itself: it is an
   * incomplete, long or malformed row, or no row.
   * @returns the number of rows
   */
  write(out: ReplyWriter, order: RowOrder): number {
    const { ahead, plan, framing } = order;
    if (plan.kinds.length > maxColumns || !this.#loadKeys(plan.keys)) return 0;
    this.#loadKinds(plan.kinds);
    const from = this.#locate(ahead);
    const aheadBytes = ahead.end - ahead.position;
    const scratch = this.#scratchOffset;
    const end =
      from + (from === this.#copiesOffset ? Math.min(aheadBytes, copiesBytes) : aheadBytes);
    const stop = scratch + Math.min(order.stopLength - out.length, scratchBytes);
    // The last byte is for the end of the last line.
    const room = scratch + Math.min(out.bytes.length - out.length, scratchBytes) - 1;
    const columns = plan.kinds.length;
    const { maxRows } = order;
    if (framing === 'csv') {
      this.#writeRecords(
        from,
        end,
        ahead.sequence,
        scratch,
        stop,
        room,
        kindsOffset,
        columns,
        maxRows,
        resultOffset,
      );
    } else {
      this.#writeRows(
        from,
        end,
        ahead.sequence,
        scratch,
        stop,
        room,
        kindsOffset,
        columns,
        maxRows,
        framing === 'lines' ? lineFeed : comma,
        order.needsComma,
        plan.keys === null ? 0 : this.#keysOffset,
        resultOffset,
      );
    }
    const result = this.#result;
    const rows = result[2] as number;
    if (rows === 0) return 0;
    const written = result[1] as number;
    out.length += this.#memory.copy(out.bytes, out.length, scratch, written);
    if (framing === 'lines') out.bytes[out.length++] = lineFeed;
    ahead.position += (result[0] as number) - from;
    ahead.sequence = (ahead.sequence + rows) & 0xff;
    return rows;
  }

  #loadKinds(kinds: Uint8Array): void {
    if (this.#kinds === kinds) return;
    this.#memory.set(kinds, kindsOffset);
    this.#kinds = kinds;
  }

  /** False: the keys are too long. */
  #loadKeys(keys: RowKeys | null): boolean {
    if (keys === null) return true;
    const { packed } = keys;
    if (packed === null || packed.length > keysBytes) return false;
    if (this.#keys !== packed) this.#memory.set(packed, this.#keysOffset);
    this.#keys = packed;
    return true;
  }

  /** Returns the offset of the packets in the memory. Packets elsewhere are copied first, up to `copiesBytes`. */
  #locate({ bytes, position, end }: PacketsAhead): number {
    if (bytes.buffer === this.#memory.buffer) return bytes.byteOffset + position;
    bytes.copy(this.#memory, this.#copiesOffset, position, Math.min(end, position + copiesBytes));
    return this.#copiesOffset;
  }
}
