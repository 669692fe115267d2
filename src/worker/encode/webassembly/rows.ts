// AssemblyScript, compiled to rows.wasm: whole row packets of the text protocol to JSON and CSV, many in one call.
// It must write what `../rows.ts` and `../csv-rows.ts` write, or leave the row to them. It knows no memory layout.
import { writeBase64, writeBit } from './binary';
import { writeField, writePlainBase64, writePlainBit } from './fields';
import { skipZeros, writeDigits, writeNumber } from './numbers';
import { writeText } from './text';

// As in columns.ts.
const kindNumber: u32 = 0;
const kindDigits: u32 = 1;
const kindText: u32 = 2;
const kindBinary: u32 = 4;
const kindBit: u32 = 5;

const headerBytes: usize = 4;
const nullMarker: u32 = 0xfb;
/** Room that any cell may need beyond its text, a 16-byte store included. */
const cellRoom: usize = 64;

/** How much one instruction copies. */
const blockBytes: usize = 16;

/**
 * Writes `[…],[…]` or `{…},{…}`, with the separator in place of the comma, for the packets between `from` and `end`, headers included.
 * It stops at a packet that is incomplete, out of sequence, no row, or a row for JavaScript; after `maxRows` rows; and after a row that ends
 * beyond `stop`. It writes nothing at `room` or beyond, and reads up to 15 bytes past `end`.
 * @param keys the text before each cell of an object, behind its length in two bytes; 0: rows are arrays
 * @param result gets three u32: the ends of reading and of writing, and the number of rows
 */
export function writeRows(
  from: usize,
  end: usize,
  sequence: u32,
  to: usize,
  stop: usize,
  room: usize,
  kinds: usize,
  columns: usize,
  maxRows: u32,
  separator: u32,
  needsSeparator: bool,
  keys: usize,
  result: usize,
): void {
  let rows: u32 = 0;
  let gap: usize = needsSeparator ? 1 : 0;
  let expected = sequence;
  while (rows < maxRows && to <= stop && end - from >= headerBytes) {
    const header = load<u32>(from);
    const start = from + headerBytes;
    const length: usize = header & 0xffffff;
    const rowEnd = start + length;
    if (rowEnd > end || header >>> 24 != expected || length == 0) break;
    // A row's JSON is about as long as its packet: what cannot fit is not begun.
    if (to + length + cellRoom > room) break;
    store<u8>(to, separator);
    const written = writeRow(start, rowEnd, to + gap, room, kinds, columns, keys);
    if (written == 0) break;
    to = written;
    from = rowEnd;
    gap = 1;
    rows += 1;
    expected = (expected + 1) & 0xff;
  }
  store<u32>(result, <u32>from);
  store<u32>(result, <u32>to, 4);
  store<u32>(result, rows, 8);
}

/** Writes `[cell,…]` or `{"key":cell,…}`. Returns its end, or 0 if JavaScript must write the row. */
@inline
function writeRow(
  start: usize,
  end: usize,
  to: usize,
  room: usize,
  kinds: usize,
  columns: usize,
  keys: usize,
): usize {
  let at = start;
  let key = keys;
  store<u8>(to, 0x5b);
  for (let column: usize = 0; column < columns; column += 1) {
    if (at >= end || to + cellRoom > room) return 0;
    if (keys == 0) {
      to += 1;
    } else {
      const keyLength: usize = load<u16>(key);
      key += 2;
      if (to + keyLength + cellRoom > room) return 0;
      copyBlocks(key, keyLength, to);
      key += keyLength;
      to += keyLength;
    }
    let length = <u32>load<u8>(at++);
    if (length >= nullMarker) {
      if (length == nullMarker) {
        store<u32>(to, 0x6c6c756e);
        to += 4;
        store<u8>(to, 0x2c);
        continue;
      }
      if (length == 0xfc) {
        length = load<u16>(at);
        at += 2;
      } else if (length == 0xfd) {
        length = <u32>load<u16>(at) | ((<u32>load<u8>(at, 2)) << 16);
        at += 3;
      } else {
        // The end of rows and an error begin so, or a cell of 16 MiB.
        return 0;
      }
    }
    const cellEnd = at + length;
    if (cellEnd > end) return 0;
    const kind = <u32>load<u8>(kinds + column);
    if (kind == kindText) to = writeText(at, cellEnd, to, room);
    else if (kind == kindNumber) to = writeNumber(at, cellEnd, to, room);
    else if (kind == kindDigits) to = writeDigits(at, cellEnd, to, room);
    else if (kind == kindBinary) to = writeBase64(at, cellEnd, to, room);
    else if (kind == kindBit) to = writeBit(at, cellEnd, to);
    else return 0;
    if (to == 0) return 0;
    at = cellEnd;
    store<u8>(to, 0x2c);
  }
  if (at != end) return 0;
  store<u8>(to, keys == 0 ? 0x5d : 0x7d);
  return to + 1;
}

/** Copies up to 15 bytes too many. */
@inline
function copyBlocks(from: usize, length: usize, to: usize): void {
  for (let done: usize = 0; done < length; done += blockBytes) {
    v128.store(to + done, v128.load(from + done));
  }
}

/**
 * The same for records of CSV. The loop and the decoding of lengths are repeated here, so that the format is decided once per call and each
 * of the two is inlined as a whole.
 */
export function writeRecords(
  from: usize,
  end: usize,
  sequence: u32,
  to: usize,
  stop: usize,
  room: usize,
  kinds: usize,
  columns: usize,
  maxRows: u32,
  result: usize,
): void {
  let rows: u32 = 0;
  let expected = sequence;
  while (rows < maxRows && to <= stop && end - from >= headerBytes) {
    const header = load<u32>(from);
    const start = from + headerBytes;
    const length: usize = header & 0xffffff;
    const rowEnd = start + length;
    if (rowEnd > end || header >>> 24 != expected || length == 0) break;
    if (to + length + cellRoom > room) break;
    const written = writeRecord(start, rowEnd, to, room, kinds, columns);
    if (written == 0) break;
    to = written;
    from = rowEnd;
    rows += 1;
    expected = (expected + 1) & 0xff;
  }
  store<u32>(result, <u32>from);
  store<u32>(result, <u32>to, 4);
  store<u32>(result, rows, 8);
}

/** Writes one record. Returns its end, or 0 if JavaScript must write the row. */
@inline
function writeRecord(
  start: usize,
  end: usize,
  to: usize,
  room: usize,
  kinds: usize,
  columns: usize,
): usize {
  let at = start;
  for (let column: usize = 0; column < columns; column += 1) {
    if (at >= end || to + cellRoom > room) return 0;
    let length = <u32>load<u8>(at++);
    if (length >= nullMarker) {
      if (length == nullMarker) {
        store<u8>(to++, 0x2c);
        continue;
      }
      if (length == 0xfc) {
        length = load<u16>(at);
        at += 2;
      } else if (length == 0xfd) {
        length = <u32>load<u16>(at) | ((<u32>load<u8>(at, 2)) << 16);
        at += 3;
      } else {
        return 0;
      }
    }
    const cellEnd = at + length;
    if (cellEnd > end) return 0;
    const kind = <u32>load<u8>(kinds + column);
    if (kind == kindText) to = writeField(at, cellEnd, to, room);
    else if (kind <= kindDigits) to = writeField(skipZeros(at, cellEnd), cellEnd, to, room);
    else if (kind == kindBinary) to = writePlainBase64(at, cellEnd, to, room);
    else if (kind == kindBit) to = writePlainBit(at, cellEnd, to);
    else return 0;
    if (to == 0) return 0;
    at = cellEnd;
    store<u8>(to++, 0x2c);
  }
  if (at != end) return 0;
  // In place of the last comma.
  store<u16>(to - 1, 0x0a0d);
  return to + 1;
}
