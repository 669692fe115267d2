// The unix socket beside the claim's lock, at which its holder tells how far it is.
// Must not know the lock.
import { createHash } from 'node:crypto';
import { lstatSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { shortenPath } from '../shared/process/short-path.ts';

/** How far the holder of a claim is; `boundMs`: how long it may keep the claim while it leaves. */
export type Phase =
  | { readonly kind: 'starting' | 'running' }
  | { readonly kind: 'leaving'; readonly boundMs: number };

/** What asking came to. `gone`: nobody answers there. `released`: it was leaving, and has let the claim go. */
export type Answer =
  | { readonly kind: 'gone' | 'released' }
  | { readonly kind: 'stands'; readonly reason: string };

/** A socket that answers. */
export type PhaseSocket = {
  /** Takes the name away and answers nobody any more; who waits for the claim stays connected. */
  readonly close: () => void;
  /** Tells those who wait that the claim is free. */
  readonly dismiss: () => void;
};

/** A holder that does not answer for so long counts as running. */
export const answerBoundMs = 5000;
const leavingMarginMs = 5000;
// The asker may have sent a TERM just before: one further turn of the loop, and its handler has run.
const furtherTurnMs = 5;
const mostAsking = 256;
const mostNameBytes = 80;

/** Answers at the socket of this pidfile's instance. Only the holder of the claim may; a dead one's socket is replaced. */
export async function openPhaseSocket(pidfile: string, phase: () => Phase): Promise<PhaseSocket> {
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
      socket.end(`${now.kind}\n`);
      return;
    }
    // The connection stays: its end tells that the claim is free.
    waiting.add(socket);
    socket.write(`leaving ${now.boundMs}\n`);
  };
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('close', () => waiting.delete(socket));
    socket.resume();
    setTimeout(() => answer(socket), furtherTurnMs);
  });
  server.maxConnections = mostAsking;
  const reached = shortenPath(socketPath(pidfile));
  // The umask of 027 leaves the right to connect to the owner alone.
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

/** Asks the holder, and waits for the end of one that is leaving. */
export function askHolder(pidfile: string): Promise<Answer> {
  const stats = lstatSync(socketPath(pidfile), { throwIfNoEntry: false });
  // Somebody else's word for our instance is worth nothing.
  const isOurs = stats?.isSocket() === true && [0, process.getuid?.()].includes(stats.uid);
  if (!isOurs) return Promise.resolve({ kind: 'gone' });
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
    const giveUp = (reason: string) => () => conclude({ kind: 'stands', reason });
    let timer = setTimeout(giveUp('its holder does not answer'), answerBoundMs);
    socket.setEncoding('utf8');
    socket.on('error', () => conclude({ kind: isLeaving ? 'released' : 'gone' }));
    socket.on('data', (piece: string) => {
      text += piece;
      const said = /^(\w+)(?: (\d+))?\n/.exec(text);
      if (said === null || isLeaving) return;
      isLeaving = said[1] === 'leaving';
      if (!isLeaving) return conclude({ kind: 'stands', reason: `it is ${said[1]}` });
      clearTimeout(timer);
      const boundMs = Number(said[2]) + leavingMarginMs;
      timer = setTimeout(giveUp('its holder does not let the claim go'), boundMs);
    });
    // An end without an answer: it died while it was asked.
    socket.on('close', () => conclude({ kind: isLeaving ? 'released' : 'gone' }));
  });
}

/** Beside the pidfile; under a name of bounded length where the pidfile's own is long. */
function socketPath(pidfile: string): string {
  const name = `${basename(pidfile)}.sock`;
  if (Buffer.byteLength(name) <= mostNameBytes) return join(dirname(pidfile), name);
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 16);
  return join(dirname(pidfile), `dbhttpd-${hash}.sock`);
}

function removeStale(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isSocket()) throw new Error(`${path} is in the way`);
  unlinkSync(path);
}
