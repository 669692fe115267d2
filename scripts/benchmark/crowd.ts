// Many keep-alive connections to one server. A few of them ask at a time, in turn.
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

/** Open connections. The caller must close them. */
export type Crowd = {
  readonly size: number;
  /** Sends one request on each connection. */
  readonly askAll: (request: string) => Promise<Turns>;
  /** Sends requests on the connections in turn, for this many seconds. */
  readonly askFor: (request: string, seconds: number) => Promise<Turns>;
  readonly close: () => void;
};

/** The result. Errors are lost connections and statuses other than 200. */
export type Turns = {
  readonly requests: number;
  readonly errors: number;
  readonly seconds: number;
  readonly timesMs: readonly number[];
};

const atATime = 16;
const openingAtATime = 200;
/** A client address has some 28,000 ports towards one server, and closed connections keep theirs for a minute. */
const clientAddresses = 4;
/** All turns end by then, whatever the server does. */
const maxTurnsMs = 60_000;
/** Descriptors that this process needs for other purposes. */
const ownDescriptors = 500;

/** The largest crowd that this process may open (Node raises its limit of open files to the hard one). */
export function largestCrowd(): number {
  const limits = readFileSync('/proc/self/limits', 'latin1');
  return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? 1024) - ownDescriptors;
}

/** Opens `size` connections to a port of the loopback address. Rejects when one is refused. */
export async function openCrowd(port: number, size: number): Promise<Crowd> {
  const sockets: Socket[] = [];
  // A reset leaves no port waiting on either side.
  const close = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  try {
    while (sockets.length < size) {
      const count = Math.min(openingAtATime, size - sockets.length);
      const opening = Array.from({ length: count }, (_, index) => open(port, index));
      sockets.push(...(await Promise.all(opening)));
    }
  } catch (error) {
    close();
    throw error;
  }
  const askFor = (request: string, seconds: number) => {
    const end = performance.now() + seconds * 1e3;
    return takeTurns(sockets, request, () => performance.now() < end);
  };
  const askAll = (request: string) => takeTurns(sockets, request, (asked, own) => asked < own);
  return { size, askAll, askFor, close };
}

function open(port: number, index: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const localAddress = `127.0.0.${1 + (index % clientAddresses)}`;
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.once('error', reject).once('connect', () => {
      // Later errors show as a missing reply.
      socket.off('error', reject).on('error', () => {});
      resolve(socket);
    });
  });
}

/** @param goesOn gets the number of requests of a lane, and the number of its sockets */
async function takeTurns(
  sockets: readonly Socket[],
  request: string,
  goesOn: (asked: number, own: number) => boolean,
): Promise<Turns> {
  const begun = performance.now();
  const timesMs: number[] = [];
  let errors = 0;
  const lanes = Math.min(atATime, sockets.length);
  // Each lane has separate sockets, so no two requests share one.
  const run = async (lane: number): Promise<void> => {
    const own = sockets.filter((_, index) => index % lanes === lane);
    for (let asked = 0; goesOn(asked, own.length); asked += 1) {
      const sent = performance.now();
      if (!(await ask(own[asked % own.length] as Socket, request))) errors += 1;
      timesMs.push(performance.now() - sent);
    }
  };
  const impatience = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, maxTurnsMs);
  await Promise.all(Array.from({ length: lanes }, (_, lane) => run(lane)));
  clearTimeout(impatience);
  const seconds = (performance.now() - begun) / 1e3;
  return { requests: timesMs.length, errors, seconds, timesMs };
}

/** Sends one request and waits for the whole reply, which must say its length. */
function ask(socket: Socket, request: string): Promise<boolean> {
  return new Promise((resolve) => {
    let text = '';
    const end = (good: boolean) => {
      socket.off('data', take).off('close', lose);
      resolve(good);
    };
    const lose = () => end(false);
    const take = (bytes: Buffer) => {
      text += bytes.toString('latin1');
      const head = text.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
      if (length === undefined) end(false);
      else if (text.length >= head + 4 + Number(length)) end(text.startsWith('HTTP/1.1 200 '));
    };
    if (socket.destroyed) {
      resolve(false);
      return;
    }
    socket.on('data', take).on('close', lose);
    socket.write(request);
  });
}
