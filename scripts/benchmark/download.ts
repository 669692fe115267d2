// Readers of a large reply: when its body began, when it ended, whether it was complete.
import { connect } from 'node:net';
import { percentile } from '../support/statistics.ts';
import type { Outcome } from './outcome.ts';

/** One reply read to its end. */
export type Download = {
  readonly whole: boolean;
  /** Status line and headers. */
  readonly headBytes: number;
  /** Bytes on the connection, with the framing of chunks. */
  readonly bodyBytes: number;
  readonly firstByteMs: number;
  readonly totalMs: number;
};

const headLimitBytes = 16_384;
// Enough for the last bytes of the body and a chunked ending.
const tailBytes = 64;

/** Tells whether a reply that ended without an error is complete, from its head, the length of its body, and its last bytes. */
export function isWhole(head: string, bodyBytes: number, tail: string): boolean {
  if (!/^HTTP\/1\.1 200 /.test(head)) return false;
  const length = /^content-length: (\d+)\r?$/im.exec(head)?.[1];
  if (length !== undefined) return bodyBytes === Number(length);
  return tail.endsWith('\r\n0\r\n\r\n');
}

/** Sends `request` on a new connection and reads until it closes. Never rejects; takes at most 60 s. */
export function download(port: number, request: string): Promise<Download> {
  return new Promise((resolve) => {
    const begun = performance.now();
    let head = '';
    let headDone = false;
    let bodyBytes = 0;
    let firstByteMs = Number.NaN;
    let tail = '';
    const takeHead = (bytes: Buffer): Buffer => {
      head += bytes.toString('latin1');
      const end = head.indexOf('\r\n\r\n');
      headDone = end >= 0 || head.length > headLimitBytes;
      const rest = Buffer.from(end < 0 ? '' : head.slice(end + 4), 'latin1');
      if (end >= 0) head = head.slice(0, end + 2);
      return rest;
    };
    const take = (bytes: Buffer): void => {
      const body = headDone ? bytes : takeHead(bytes);
      if (body.length === 0) return;
      if (bodyBytes === 0) firstByteMs = performance.now() - begun;
      bodyBytes += body.length;
      tail = (tail + body.toString('latin1', Math.max(0, body.length - tailBytes))).slice(
        -tailBytes,
      );
    };
    const buffer = Buffer.allocUnsafe(256 * 1024);
    const socket = connect({
      port,
      host: '127.0.0.1',
      // One buffer for the whole reply, because the reader must cost little beside what it measures.
      onread: {
        buffer,
        callback: (length) => {
          take(buffer.subarray(0, length));
          return true;
        },
      },
    });
    socket.setTimeout(60_000, () => socket.destroy(new Error('timeout')));
    socket.once('connect', () => socket.write(request));
    let broken = false;
    socket.once('error', () => {
      broken = true;
    });
    socket.once('close', () => {
      const whole = !broken && isWhole(head, bodyBytes, tail);
      resolve({
        whole,
        headBytes: head.length + 2,
        bodyBytes,
        firstByteMs,
        totalMs: performance.now() - begun,
      });
    });
  });
}

/** Runs `readers` downloads of the same reply at once, `times` in a row. A reply that is cut or smaller than `minBytes` is an error. */
export async function runDownloads(
  port: number,
  request: string,
  wish: { readonly readers: number; readonly times: number; readonly minBytes: number },
): Promise<Outcome> {
  const begun = performance.now();
  const replies: Download[] = [];
  for (let turn = 0; turn < wish.times; turn += 1) {
    const turns = Array.from({ length: wish.readers }, () => download(port, request));
    replies.push(...(await Promise.all(turns)));
  }
  const seconds = (performance.now() - begun) / 1e3;
  const totals = replies.map(({ totalMs }) => totalMs);
  const firsts = replies.map(({ firstByteMs }) => firstByteMs);
  return {
    requests: replies.length,
    seconds,
    p50Ms: percentile(totals, 0.5),
    p99Ms: percentile(totals, 0.99),
    errors: replies.filter(({ whole, bodyBytes }) => !whole || bodyBytes < wish.minBytes).length,
    firstByteMs: percentile(firsts, 0.5),
    bytes: replies.reduce((sum, { headBytes, bodyBytes }) => sum + headBytes + bodyBytes, 0),
  };
}
