// The unix socket beside the claim, at which its holder reports its phase, and accepts orders of its own user.
import { createHash } from 'node:crypto';
import { lstatSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { shortenPath } from '../../shared/process/socket-paths.ts';

/** The phase of a claim's holder. `boundMs`: the longest time that it keeps the claim while it leaves. */
export type Phase =
  | { readonly kind: 'starting' | 'running' }
  | { readonly kind: 'leaving'; readonly boundMs: number };

/** The holder's answer. `gone`: there is none. `released`: it was leaving, and has released the claim. */
export type Answer =
  | { readonly kind: 'gone' | 'released' }
  | { readonly kind: 'remains'; readonly reason: string };

/** A socket that answers. */
export type PhaseSocket = {
  /** Removes the name and answers no longer. Processes that wait for the claim remain connected. */
  readonly close: () => void;
  /** Ends the connections of waiting processes: the claim is free. */
  readonly dismiss: () => void;
};

/** A holder that does not answer for this time counts as running. */
export const answerBoundMs = 5000;
const leavingMarginMs = 5000;
// The caller may have sent a TERM just before. Its handler runs in the next turn of the event loop.
const furtherTurnMs = 5;
const maxCallers = 256;
const maxOrderCharacters = 64 * 1024;
const maxNameBytes = 80;

/**
 * Answers at the socket of this pidfile's instance, and replaces the socket of a dead holder. Only the holder of the claim may call it.
 * @param obey carries out an order, which is one line, and resolves with the answer, one line. Null: the connection ends
 */
export async function openPhaseSocket(
  pidfile: string,
  phase: () => Phase,
  obey: (order: string) => Promise<string | null>,
): Promise<PhaseSocket> {
  removeStale(socketPath(pidfile));
  const waiting = new Set<Socket>();
  let isOver = false;
  const answer = (socket: Socket) => {
    if (isOver) {
      socket.destroy();
      return;
    }
    const now = phase();
    if (now.kind !== 'leaving') {
      socket.write(`${now.kind}\n`);
      takeOrder(socket, obey);
      return;
    }
    // The connection remains open. Its end means that the claim is free.
    waiting.add(socket);
    socket.write(`leaving ${now.boundMs}\n`);
  };
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('close', () => waiting.delete(socket));
    socket.resume();
    setTimeout(() => answer(socket), furtherTurnMs);
  });
  server.maxConnections = maxCallers;
  const reached = shortenPath(socketPath(pidfile));
  // With the umask of 027, only the owner can connect.
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path: reached.path }, resolve);
  });
  server.on('error', () => {});
  server.unref();
  return {
    close: () => {
      // libuv unlinks the name that it has bound.
      if (server.listening) server.close();
      reached.forget();
    },
    dismiss: () => {
      isOver = true;
      for (const socket of waiting) socket.destroy();
    },
  };
}

/** A client that asks only for the phase closes the connection. */
function takeOrder(socket: Socket, obey: (order: string) => Promise<string | null>): void {
  let text = '';
  const timer = setTimeout(() => socket.destroy(), answerBoundMs);
  socket.once('close', () => clearTimeout(timer));
  socket.setEncoding('utf8');
  const listen = (piece: string) => {
    text += piece;
    if (text.length > maxOrderCharacters) socket.destroy();
    if (!text.includes('\n')) return;
    socket.off('data', listen);
    socket.resume();
    clearTimeout(timer);
    void obey(text.slice(0, text.indexOf('\n'))).then((answer) =>
      answer === null ? socket.destroy() : socket.end(`${answer}\n`),
    );
  };
  socket.on('data', listen);
}

/**
 * Has the holder carry out an order, which is one line, and returns its answer. Null: none came within 10 s, because the holder is
 * gone, leaves, hangs, or has a version that accepts no orders.
 */
export function orderHolder(pidfile: string, order: string): Promise<string | null> {
  if (!isOurs(pidfile)) return Promise.resolve(null);
  return new Promise((resolve) => {
    const reached = shortenPath(socketPath(pidfile));
    const socket = connect({ path: reached.path });
    const conclude = (answer: string | null) => {
      clearTimeout(timer);
      socket.destroy();
      reached.forget();
      resolve(answer);
    };
    const timer = setTimeout(() => conclude(null), 2 * answerBoundMs);
    let text = '';
    let isSent = false;
    socket.setEncoding('utf8');
    socket.on('error', () => conclude(null));
    socket.on('close', () => conclude(null));
    socket.on('data', (piece: string) => {
      text += piece;
      const [phase = '', answer, ...rest] = text.split('\n');
      if (rest.length > 0) return conclude(answer ?? null);
      if (answer === undefined || isSent) return;
      if (phase.startsWith('leaving')) return conclude(null);
      isSent = true;
      socket.write(`${order}\n`);
    });
  });
}

/** Asks the holder, and waits for the end of one that is leaving. */
export function askHolder(pidfile: string): Promise<Answer> {
  if (!isOurs(pidfile)) return Promise.resolve({ kind: 'gone' });
  return new Promise((resolve) => {
    const reached = shortenPath(socketPath(pidfile));
    const socket = connect({ path: reached.path });
    let text = '';
    let isLeaving = false;
    const conclude = (answer: Answer) => {
      clearTimeout(timer);
      socket.destroy();
      reached.forget();
      resolve(answer);
    };
    const giveUp = (reason: string) => () => conclude({ kind: 'remains', reason });
    let timer = setTimeout(giveUp('its holder does not answer'), answerBoundMs);
    socket.setEncoding('utf8');
    socket.on('error', () => conclude({ kind: isLeaving ? 'released' : 'gone' }));
    socket.on('data', (piece: string) => {
      text += piece;
      const said = /^(\w+)(?: (\d+))?\n/.exec(text);
      if (said === null || isLeaving) return;
      isLeaving = said[1] === 'leaving';
      if (!isLeaving) return conclude({ kind: 'remains', reason: `it is ${said[1]}` });
      clearTimeout(timer);
      const boundMs = Number(said[2]) + leavingMarginMs;
      timer = setTimeout(giveUp('its holder does not let the claim go'), boundMs);
    });
    // If the connection ends without an answer, the holder died.
    socket.on('close', () => conclude({ kind: isLeaving ? 'released' : 'gone' }));
  });
}

/** Only a process of the same user, or of root, is trusted to answer. */
function isOurs(pidfile: string): boolean {
  const stats = lstatSync(socketPath(pidfile), { throwIfNoEntry: false });
  return stats?.isSocket() === true && [0, process.getuid?.()].includes(stats.uid);
}

/** The socket beside the pidfile. If the pidfile's name is long, the socket's is a hash of it. */
function socketPath(pidfile: string): string {
  const name = `${basename(pidfile)}.sock`;
  if (Buffer.byteLength(name) <= maxNameBytes) return join(dirname(pidfile), name);
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 16);
  return join(dirname(pidfile), `dbhttpd-${hash}.sock`);
}

function removeStale(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isSocket()) throw new Error(`${path} is in the way`);
  unlinkSync(path);
}
