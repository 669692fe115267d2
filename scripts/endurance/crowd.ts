// The clients of a mixed run: quick and slow, patient and rude, each in its own lane until the run ends.
import { setTimeout as pause } from 'node:timers/promises';
import { Client, composeQuery, type Ending, open, readEnding } from './client.ts';
import {
  change,
  download,
  insert,
  leave,
  look,
  outlast,
  point,
  type Question,
} from './questions.ts';

/** The part of the run that a lane needs. */
export type Desk = {
  readonly port: number;
  readonly database: string;
  readonly nextId: () => number;
  /** True when the run is over. */
  readonly isOver: () => boolean;
  /** Records how a question that was asked at `fromMs` ended. */
  readonly note: (id: number, question: Question, ending: Ending, fromMs: number) => void;
};

const restMs = 8;
const enoughBytes = 200_000;
const burst = 40;

/** Runs all lanes; resolves when the run is over and the last answer is there. */
export async function runCrowd(desk: Desk): Promise<void> {
  const several = (count: number, lane: () => Promise<void>) => Array.from({ length: count }, lane);
  await Promise.all([
    ...several(8, () => quickLane(desk, true)),
    ...several(4, () => quickLane(desk, false)),
    ...several(2, () => repeat(desk, 100, (id) => askOnce(desk, id, outlast(id)))),
    ...several(2, () => repeat(desk, 200, (id) => abortDownload(desk, id))),
    ...several(2, () => repeat(desk, 200, (id) => readSlowly(desk, id))),
    ...several(2, () => repeat(desk, 100, (id) => sendHalves(desk, id))),
    repeat(desk, 2_000, () => burstOut(desk)),
  ]);
}

async function repeat(desk: Desk, waitMs: number, once: (id: number) => Promise<void>) {
  while (!desk.isOver()) {
    await once(desk.nextId());
    await pause(waitMs);
  }
}

/** Mostly points and inserts; every sixth question looks for what another has left in its session. */
function quickQuestion(desk: Desk, id: number): Question {
  switch (id % 6) {
    case 0:
      return look(id, desk.database);
    case 1:
      return change(id);
    case 2:
      return leave(id);
    case 3:
      return insert(id);
    default:
      return point(id);
  }
}

async function quickLane(desk: Desk, keepsAlive: boolean): Promise<void> {
  const client = new Client(desk.port, keepsAlive);
  await repeat(desk, restMs, async (id) => {
    const question = quickQuestion(desk, id);
    const fromMs = performance.now();
    desk.note(id, question, await client.ask(question.request), fromMs);
  });
  client.close();
}

async function askOnce(desk: Desk, id: number, question: Question): Promise<void> {
  const fromMs = performance.now();
  desk.note(id, question, await new Client(desk.port, false).ask(question.request), fromMs);
}

/** Fills the pools with more requests than there are connections. Each request needs one. */
async function burstOut(desk: Desk): Promise<void> {
  const ids = Array.from({ length: burst }, desk.nextId);
  await Promise.all(ids.map((id) => askOnce(desk, id, change(id))));
}

/** Reads a part of a large result and leaves, by FIN or RST. */
async function abortDownload(desk: Desk, id: number): Promise<void> {
  const question = download(id);
  const fromMs = performance.now();
  const connection = await open(desk.port);
  if ('kind' in connection) return desk.note(id, question, connection, fromMs);
  let received = 0;
  const enough = new Promise<'enough' | 'ended'>((resolve) => {
    connection.socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received >= enoughBytes) resolve('enough');
    });
    connection.socket.once('end', () => resolve('ended')).once('close', () => resolve('ended'));
  });
  connection.send(composeQuery(question.request, { closes: true }));
  const how = await enough;
  if (how === 'ended') {
    desk.note(id, question, { kind: 'cut', detail: 'before it was left', received }, fromMs);
  }
  if (id % 2 === 0) connection.reset();
  else connection.close();
}

/** Reads all of a large result, with a rest after every piece. */
async function readSlowly(desk: Desk, id: number): Promise<void> {
  const question = download(id);
  const fromMs = performance.now();
  const connection = await open(desk.port);
  if ('kind' in connection) return desk.note(id, question, connection, fromMs);
  const { socket } = connection;
  socket.on('data', () => {
    socket.pause();
    setTimeout(() => socket.resume(), 30);
  });
  connection.send(composeQuery(question.request));
  desk.note(id, question, await readEnding(connection), fromMs);
  connection.close();
}

/** Sends a request in two halves with a rest between, or sends only the first half and leaves. */
async function sendHalves(desk: Desk, id: number): Promise<void> {
  const question = insert(id);
  const fromMs = performance.now();
  const connection = await open(desk.port);
  if ('kind' in connection) return desk.note(id, question, connection, fromMs);
  const bytes = composeQuery(question.request);
  const middle = id % bytes.length;
  connection.send(bytes.slice(0, middle));
  await pause(200);
  if (id % 2 === 0) return connection.reset();
  connection.send(bytes.slice(middle));
  desk.note(id, question, await readEnding(connection), fromMs);
  connection.close();
}
