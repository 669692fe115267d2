// The token of an open transaction: opaque, signed, and it names the worker that has the transaction.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The name of a transaction. */
export type TransactionName = {
  /** The worker's process id. */
  readonly pid: number;
  /** Distinguishes workers with the same process id: 16 hexadecimal digits. */
  readonly incarnation: string;
  /** Its number in that worker. */
  readonly serial: number;
};

/** The section and the owner of a transaction: its token is invalid for others. */
export type TransactionBearer = {
  readonly section: string;
  /** `transactionOwner` of the caller that began it. */
  readonly owner: string;
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

/** Reads a token; null: it is not valid, or not for this bearer. Never throws. */
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

function sign(payload: Buffer, { section, owner }: TransactionBearer, key: Buffer): Buffer {
  return createHmac('sha256', key)
    .update(payload)
    .update(JSON.stringify([section, owner]))
    .digest()
    .subarray(0, macBytes);
}
