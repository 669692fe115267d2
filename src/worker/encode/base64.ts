// Bytes as base64 (RFC 4648 section 4) inside a JSON string.
// Must not know which columns are binary.
import type { ReplyWriter } from './writer.ts';

const quote = 0x22;
/** A multiple of three, so that pieces join without padding. */
const pieceBytes = 6144;

/** Writes bytes of any length as a base64 JSON string, quotes included. */
export function writeBase64(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  out.reserve(1);
  out.bytes[out.length++] = quote;
  for (let from = start; from < end; from += pieceBytes) {
    const to = Math.min(from + pieceBytes, end);
    out.reserve(Math.ceil((to - from) / 3) * 4);
    out.length += out.bytes.write(source.toString('base64', from, to), out.length, 'latin1');
  }
  out.reserve(1);
  out.bytes[out.length++] = quote;
}
