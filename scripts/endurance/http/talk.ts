// One connection that sends exact bytes, in segments, and collects all that comes back.
import { connect, type NetConnectOpts } from 'node:net';
import { readReplies } from './replies.ts';

/** Everything that came back. `ended` false: the server did not end the connection in time. */
export type Heard = { readonly text: string; readonly ended: boolean };

/** Longer than any of these servers needs, on a machine that is busy. */
const maxMs = 10_000;

/**
 * Sends the pieces, each after the kernel has taken the one before and the event loop has turned. Resolves when the server has ended
 * the connection, or has said in a reply that it will: it may wait until the client has sent all.
 * @param thenEnd whether FIN follows the pieces. The gateway takes that for a client that has left
 * @param wanted this many replies are enough
 */
export function talk(
  target: NetConnectOpts,
  pieces: readonly Buffer[],
  { thenEnd = false, wanted = Number.POSITIVE_INFINITY } = {},
): Promise<Heard> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect({ ...target, noDelay: true });
    let ended = true;
    const timer = setTimeout(() => {
      ended = false;
      socket.destroy();
    }, maxMs);
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (isEnough(Buffer.concat(chunks).toString('latin1'), wanted)) socket.destroy();
    });
    // A reset may come when the server has not read the padding: what it has answered is here.
    socket.on('error', () => {});
    socket.once('close', () => {
      clearTimeout(timer);
      resolve({ text: Buffer.concat(chunks).toString('latin1'), ended });
    });
    const send = (n: number) => {
      const piece = pieces[n];
      if (piece === undefined) {
        if (thenEnd) socket.end();
        return;
      }
      socket.write(piece, () => {
        if (n + 1 < pieces.length) setImmediate(send, n + 1);
        else send(n + 1);
      });
    };
    send(0);
  });
}

/** Whether all replies have come. A reply to HEAD does not show that it is whole. */
function isEnough(text: string, wanted: number): boolean {
  const replies = readReplies(text) ?? [];
  if (replies.length >= wanted) return true;
  const last = replies.at(-1);
  return last?.closes === true && (last.body !== '' || last.header('content-length') === '0');
}
