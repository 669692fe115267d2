// The value of a BIT that a function has returned: servers send it as bytes, as decimal digits, or as characters.
// Must not know columns.
import { decode } from '../../shared/mysql/decoding.ts';
import type { BitConversion } from './column-kinds.ts';

/** 2^64 - 1 */
const mostDigits = 20;
const digitZero = 0x30;
const digitNine = 0x39;

/**
 * The value of a cell; null where it is none.
 *
 * The bytes of a BIT(n) are exactly ⌈n/8⌉, and less than 2^n. So are the digits only where n mod 8 is 6, 7 or 0, and there are ⌈n/8⌉ of
 * them: such a cell is taken for what `rather` says. MySQL's IF, CASE, NULLIF, LAG and LEAD take the bytes for latin1 and send them as
 * UTF-8 (seen on 9.7).
 */
export function readBits(cell: Buffer, { bits, rather }: BitConversion): bigint | null {
  const bytes = fromBytes(cell, bits);
  const text = fromDigits(cell, bits);
  if (bytes !== null && text !== null) return rather === 'text' ? text : bytes;
  return bytes ?? text ?? fromCharacters(cell, bits);
}

/** A value as the bytes of a BIT(n). */
export function bitBytes(value: bigint, bits: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes.subarray(8 - byteCount(bits));
}

function byteCount(bits: number): number {
  return Math.ceil(bits / 8);
}

function fromBytes(bytes: Buffer, bits: number): bigint | null {
  if (bytes.length !== byteCount(bits)) return null;
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return fitting(value, bits);
}

function fromDigits(text: Buffer, bits: number): bigint | null {
  const { length } = text;
  if (length === 0 || length > mostDigits || (text[0] === digitZero && length > 1)) return null;
  if (!text.every((byte) => byte >= digitZero && byte <= digitNine)) return null;
  return fitting(BigInt(text.toString('latin1')), bits);
}

function fromCharacters(text: Buffer, bits: number): bigint | null {
  const bytes: number[] = [];
  for (const character of text.toString()) {
    const byte = latin1Bytes.get(character);
    if (byte === undefined) return null;
    bytes.push(byte);
  }
  return fromBytes(Buffer.from(bytes), bits);
}

function fitting(value: bigint, bits: number): bigint | null {
  return value >> BigInt(bits) === 0n ? value : null;
}

/** MySQL's latin1, the other way round. */
const latin1Bytes: ReadonlyMap<string, number> = new Map(
  Array.from({ length: 256 }, (_, byte) => [decode(Buffer.of(byte), 'latin1'), byte]),
);
