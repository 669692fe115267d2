// The token of a transaction that its client holds: opaque, signed, and it names the worker that has it.
// Pure but for the hash. Must not know transactions.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** Which transaction it is. */
export type TransactionName = {
  /** The worker's process. */
  readonly pid: number;
  /** Tells one life of a process id from another: 16 hexadecimal digits. */
  readonly incarnation: string;
  /** Its number there. */
  readonly serial: number;
};

/** Whose it is: the same token is none for another section, or from another bearer. */
export type TransactionBearer = {
  readonly section: string;
  /** What the request has shown itself by; '' where nothing is asked for. */
  readonly credential: string;
};

const version = 1;
const [pidAt, incarnationAt, serialAt, macAt] = [1, 5, 13, 19];
const macBytes = 16;

/** A token as text, of letters, digits, `-` and `_`. */
export function encodeTransactionToken(
  { pid, incarnation, serial }: TransactionName,
  bearer: TransactionBearer,
  key: Buffer,
): string {
  const bytes = Buffer.alloc(macAt + macBytes);
  bytes.writeUInt8(version, 0);
  bytes.writeUInt32BE(pid, pidAt);
  bytes.write(incarnation, incarnationAt, 'hex');
  bytes.writeUIntBE(serial, serialAt, macAt - serialAt);
  sign(bytes.subarray(0, macAt), bearer, key).copy(bytes, macAt);
  return bytes.toString('base64url');
}

/** Reads a token; null: it is none of ours, or not for this bearer. Never throws. */
export function decodeTransactionToken(
  text: string,
  bearer: TransactionBearer,
  key: Buffer,
): TransactionName | null {
  if (!/^[\w-]+$/.test(text)) return null;
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== macAt + macBytes || bytes[0] !== version) return null;
  const expected = sign(bytes.subarray(0, macAt), bearer, key);
  if (!timingSafeEqual(bytes.subarray(macAt), expected)) return null;
  return {
    pid: bytes.readUInt32BE(pidAt),
    incarnation: bytes.toString('hex', incarnationAt, serialAt),
    serial: bytes.readUIntBE(serialAt, macAt - serialAt),
  };
}

function sign(payload: Buffer, { section, credential }: TransactionBearer, key: Buffer): Buffer {
  return createHmac('sha256', key)
    .update(payload)
    .update(JSON.stringify([section, credential]))
    .digest()
    .subarray(0, macBytes);
}
