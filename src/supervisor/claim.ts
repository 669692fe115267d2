// The claim on an instance: an abstract unix socket that the kernel frees when its holder dies, and that tells a phase.
// Must not know the pidfile's content, nor what the holder does.
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { descriptorOf } from '../shared/listening-socket.ts';

/** What the holder of a claim is doing; `boundMs`: how long a drain may last. */
export type Phase =
  | { readonly kind: 'starting' | 'running' }
  | { readonly kind: 'draining'; readonly boundMs: number };

/** A claim that this process holds, or shares with the one that it was inherited from. */
export type Claim = {
  readonly fd: number;
  readonly answerBy: (phase: () => Phase) => void;
  /** Closes this process's copy. */
  readonly close: () => void;
};

/** The claim, or why somebody else's stands. */
export type Claimed =
  | { readonly kind: 'held'; readonly claim: Claim }
  | { readonly kind: 'taken'; readonly reason: string };

const answerBoundMs = 5000;
const drainMarginMs = 5000;
// The asker may have sent a TERM just before: one further turn of the loop, and its handler has run.
const furtherTurnMs = 5;
const retryMs = 10;

/** The instance's identity: user and real path of the pidfile. Throws when the pidfile's directory is missing. */
export function instanceOf(pidfile: string, uid: number): string {
  return `${uid}:${join(realpathSync(dirname(pidfile)), basename(pidfile))}`;
}

/** Claims an instance: waits while its holder drains, gives up when one runs, starts or keeps silent. */
export async function claimInstance(instance: string): Promise<Claimed> {
  const name = socketName(instance);
  let attemptsLeft = answerBoundMs / retryMs;
  for (;;) {
    const claim = await bindClaim(name);
    if (claim !== null) return { kind: 'held', claim };
    const answer = await askHolder(name);
    if (answer === 'gone') {
      // Bound and not yet listening, or just dead: the next attempt tells.
      attemptsLeft -= 1;
      if (attemptsLeft < 0) return { kind: 'taken', reason: 'its holder cannot be reached' };
      await delay(retryMs);
    } else if (answer !== 'drained') {
      return { kind: 'taken', reason: answer };
    }
  }
}

/** What an instance's holder says of itself; null when nobody holds it. Waits while the holder drains. */
export async function holderOf(instance: string): Promise<string | null> {
  const answer = await askHolder(socketName(instance));
  return answer === 'gone' || answer === 'drained' ? null : answer;
}

/** Takes over a claim whose descriptor was inherited. */
export async function inheritClaim(fd: number): Promise<Claim> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ fd }, resolve);
  });
  return claimOf(server);
}

function socketName(instance: string): string {
  const readable = `\0dbhttpd:${instance}`;
  // An abstract name has 107 bytes at most.
  if (Buffer.byteLength(readable) <= 107) return readable;
  return `\0dbhttpd:${createHash('sha256').update(instance).digest('hex')}`;
}

/** Null when somebody holds the name. */
async function bindClaim(name: string): Promise<Claim | null> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(null);
      else reject(error);
    });
    server.listen({ path: name }, () => resolve(claimOf(server)));
  });
}

function claimOf(server: Server): Claim {
  let phase = (): Phase => ({ kind: 'starting' });
  server.maxConnections = 256;
  server.on('error', () => {});
  server.on('connection', (socket) => {
    socket.on('error', () => {});
    socket.resume();
    setTimeout(() => answer(socket, phase()), furtherTurnMs);
  });
  return {
    fd: descriptorOf(server),
    answerBy: (next) => {
      phase = next;
    },
    close: () => server.close(),
  };
}

function answer(socket: Socket, phase: Phase): void {
  // While draining the connection stays: its end tells the asker that this process is gone.
  if (phase.kind === 'draining') socket.write(`draining ${phase.boundMs}\n`);
  else socket.end(`${phase.kind}\n`);
}

/** `gone`: nobody listens there. `drained`: the holder has ended. Anything else: why the instance is taken. */
async function askHolder(name: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ path: name });
    let text = '';
    let verdict: string | null = null;
    const silent = 'its holder does not answer';
    let timer = setTimeout(() => conclude(silent), answerBoundMs);
    const conclude = (answer: string) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    socket.setEncoding('utf8');
    socket.on('error', () => conclude('gone'));
    socket.on('data', (piece: string) => {
      text += piece;
      const match = /^(\w+)(?: (\d+))?\n/.exec(text);
      if (match === null) return;
      if (match[1] !== 'draining') return conclude(`it is ${match[1]}`);
      verdict = 'drained';
      clearTimeout(timer);
      const boundMs = Number(match[2]) + drainMarginMs;
      timer = setTimeout(() => conclude('its holder does not finish draining'), boundMs);
    });
    // An end without an answer: it died while it was asked.
    socket.on('close', () => conclude(verdict ?? 'gone'));
  });
}
