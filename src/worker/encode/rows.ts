// One row of MySQL's text protocol as a JSON array or object, from bytes to bytes. Hot: it allocates nothing.
import type { Column } from '../../shared/mysql/packets.ts';
import {
  cellLength,
  lengthBytes,
  nullMarker,
  rowLengthFault,
  writeCell,
  writeNull,
} from './cells.ts';
import {
  type CellKind,
  type CellRules,
  type Conversion,
  cellKind,
  cellKinds,
  findConversion,
} from './columns.ts';
import { copyPlainNumber } from './json.ts';
import { escapeInto, maxExpansion, writeBytes } from './text.ts';
import { type ReplyWriter, slackBytes } from './writer.ts';

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const closeBrace = 0x7d;
/** Comma, quotes and the letters of null that a cell may need beyond the bytes on the wire. */
const cellOverhead = 8;

/** A text has fewer bytes than two bytes can count. */
const maxPackedBytes = 32 * 1024;

/** How the rows of a result set are written, decided before its first row. */
export type RowPlan = {
  readonly kinds: Uint8Array;
  /** For each column, how its cells are converted; null if they are not. */
  readonly conversions: readonly (Conversion | null)[];
  /** Whether some columns must be converted. */
  readonly isForeign: boolean;
  /** Null: rows are arrays. */
  readonly keys: RowKeys | null;
};

/** The names of an object's members. */
export type RowKeys = {
  /** The text before each cell: brace or comma, name and colon. */
  readonly texts: readonly Buffer[];
  /** The length of all texts. */
  readonly bytes: number;
  /** Each text behind its length in two bytes (little-endian); null: they are too long for this form. */
  readonly packed: Buffer | null;
};

/** Decides for each column how its cells are written. @param keys as in the plan */
export function planRow(
  columns: readonly Column[],
  rules: CellRules,
  keys: RowKeys | null = null,
): RowPlan {
  const kinds = Uint8Array.from(columns, (column) => cellKind(column, rules));
  const conversions = columns.map((column, index) =>
    findConversion(column, kinds[index] as CellKind),
  );
  for (const [index, conversion] of conversions.entries()) {
    if (conversion !== null) kinds[index] = cellKinds.foreign;
  }
  return { kinds, conversions, isForeign: kinds.includes(cellKinds.foreign), keys };
}

/** The names of an object's members, as a plan wants them. */
export function objectKeys(names: readonly string[]): RowKeys {
  const texts = names.map((name, index) =>
    Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`),
  );
  const bytes = texts.reduce((sum, text) => sum + text.length, 0);
  return { texts, bytes, packed: bytes > maxPackedBytes ? null : pack(texts) };
}

function pack(texts: readonly Buffer[]): Buffer {
  return Buffer.concat(
    texts.flatMap((text) => [Buffer.of(text.length & 0xff, text.length >> 8), text]),
  );
}

/** Writes a row packet as `[cell,…]`, or as an object if the plan has keys. @throws RangeError if the packet does not match the plan */
export function writeRow(
  out: ReplyWriter,
  plan: RowPlan,
  source: Buffer,
  start: number,
  end: number,
): void {
  const columnCount = plan.kinds.length;
  const keyBytes = plan.keys === null ? 0 : plan.keys.bytes;
  const worstCase = (end - start) * maxExpansion + columnCount * cellOverhead + keyBytes + 2;
  if (worstCase <= slackBytes) {
    out.reserve(worstCase);
    writeShortRow(out, plan, source, start, end);
  } else {
    writeLongRow(out, plan, source, start, end);
  }
}

/**
 * The caller has reserved all the room, and no cell is longer than two length bytes can encode. The common kinds are written here without a
 * call, with the positions in local variables.
 */
function writeShortRow(
  out: ReplyWriter,
  plan: RowPlan,
  source: Buffer,
  start: number,
  end: number,
): void {
  const { kinds, keys } = plan;
  const columnCount = kinds.length;
  let target = out.bytes;
  let to = out.length;
  let position = start;
  for (let index = 0; index < columnCount; index += 1) {
    if (keys === null) target[to++] = index === 0 ? openBracket : comma;
    else to = copyKey(target, to, keys.texts[index] as Buffer);
    let length = source[position++] as number;
    if (length === nullMarker) {
      to = writeNull(target, to);
      continue;
    }
    if (length > nullMarker) {
      length = (source[position] as number) | ((source[position + 1] as number) << 8);
      position += 2;
    }
    const cellEnd = position + length;
    if (cellEnd > end) throw new RangeError(rowLengthFault);
    const kind = kinds[index] as CellKind;
    if (kind === cellKinds.number) {
      const past = copyPlainNumber(target, to, source, position, cellEnd);
      if (past >= 0) {
        to = past;
        position = cellEnd;
        continue;
      }
    }
    if (kind === cellKinds.text) {
      target[to++] = quote;
      to = escapeInto(target, to, source, position, cellEnd);
      target[to++] = quote;
      position = cellEnd;
    } else {
      out.length = to;
      writeCell(out, kind, plan.conversions[index] ?? null, source, position, cellEnd);
      target = out.bytes;
      to = out.length;
      position = cellEnd;
    }
  }
  if (position !== end) throw new RangeError(rowLengthFault);
  target[to++] = keys === null ? closeBracket : closeBrace;
  out.length = to;
}

/** Byte by byte, since names are short: a call of `copy` takes longer. */
function copyKey(target: Buffer, to: number, key: Buffer): number {
  const { length } = key;
  for (let index = 0; index < length; index += 1) target[to + index] = key[index] as number;
  return to + length;
}

/** Writes any row: it reserves room cell by cell, and writes long cells in pieces. */
function writeLongRow(
  out: ReplyWriter,
  plan: RowPlan,
  source: Buffer,
  start: number,
  end: number,
): void {
  const { kinds, keys } = plan;
  let position = start;
  for (let index = 0; index < kinds.length; index += 1) {
    if (keys !== null) writeBytes(out, keys.texts[index] as Buffer);
    out.reserve(cellOverhead);
    if (keys === null) out.bytes[out.length++] = index === 0 ? openBracket : comma;
    if (source[position] === nullMarker) {
      out.length = writeNull(out.bytes, out.length);
      position += 1;
      continue;
    }
    const cellStart = position + lengthBytes(source, position);
    const cellEnd = cellStart + cellLength(source, position);
    if (cellEnd > end) throw new RangeError(rowLengthFault);
    const kind = kinds[index] as CellKind;
    writeCell(out, kind, plan.conversions[index] ?? null, source, cellStart, cellEnd);
    position = cellEnd;
  }
  if (position !== end) throw new RangeError(rowLengthFault);
  out.reserve(1);
  out.bytes[out.length++] = keys === null ? closeBracket : closeBrace;
}
