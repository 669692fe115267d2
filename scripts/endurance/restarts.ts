// Kill and start at once, again and again, under load: nothing of which a byte had been read goes without its answer.
//
// A client whose connection ends without a byte of an answer cannot tell whether its request was read: the kernel
// takes connections on behalf of a process that then closes its socket. Two witnesses can: the access log, which has a
// line for every request that was begun, and the table, which has its row.
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { createDaemon, type Daemon } from '../../test/support/daemon.ts';
import { eventually } from '../../test/support/eventually.ts';
import { contradictions, type Reported } from '../../test/support/histories/history.ts';
import { serverSockets } from '../../test/support/kernel-sockets.ts';
import { freeLastingPort } from '../support/private-server.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';
import { Client, composeQuery, open, readEnding } from './client.ts';
import { judgeEnding, requestPromises } from './judgement.ts';
import { insert, linger, type Question } from './questions.ts';
import { countWritten, openDatabase, stopAndLook } from './world.ts';

const promises = {
  start: 'a kill and a start at once end with another one running',
  read: 'a request that was read gets its whole answer',
  half: 'a request of which one half was read before the kill is answered',
  value: requestPromises.value,
  document: requestPromises.document,
  status: requestPromises.status,
  reported: 'the table agrees with what the reply to each write said',
  left: 'nothing is left after the stop',
} as const;

const keepers = 8;
const closers = 4;
/** These have a statement in flight at almost every kill. */
const lingerers = 8;
const restMs = 5;
/** The time that each instance serves before it is killed. */
const serviceMs = 300;
const progressCycles = 10;

/** Runs this many cycles. Resolves to the verdicts. */
export async function runRestarts(cycles: number, say: (line: string) => void): Promise<Verdict[]> {
  const database = await openDatabase();
  const port = await freeLastingPort();
  const { host, user, password, name } = database;
  const account = { database: name, host, port: String(database.port), user, password };
  const listen = `127.0.0.1:${port}`;
  const daemon = createDaemon({ ...account, listen, workers: '2', access_log: 'json' });
  const findings = new Findings(Object.values(promises));
  const history = new Map<number, Reported>();
  const unanswered = new Set<number>();
  let lastId = 0;
  let isOver = false;
  const nextId = () => {
    lastId += 1;
    return lastId;
  };

  const lane = async (keepsAlive: boolean, ask: (id: number) => Question) => {
    const client = new Client(port, keepsAlive);
    while (!isOver) {
      const id = nextId();
      const question = ask(id);
      const ending = await client.ask(question.request, { requestId: nameOf(id) });
      if (ending.kind === 'refused') {
        findings.count('refused');
      } else if (ending.kind === 'cut') {
        findings.count('ended without an answer');
        unanswered.add(id);
        if (question.writes === 'row') history.set(id, 'unknown');
        if (ending.received > 0) findings.breach(promises.read, ending.detail);
      } else {
        // A stopping gateway may answer 503 `stopping`, which is an answer.
        const { outcome, reported, breach } = judgeEnding(question, ending, {
          worker: false,
          database: ending.status === 503,
        });
        findings.count(outcome);
        if (question.writes === 'row') history.set(id, reported);
        if (breach !== null) findings.breach(breach.promise, breach.example);
      }
      await pause(restMs);
    }
    client.close();
  };

  const { status } = await daemon.start();
  if (status !== 0) throw new Error(`exit ${status}\n${daemon.readLog()}`);
  const lanes = [
    ...Array.from({ length: keepers }, () => lane(true, insert)),
    ...Array.from({ length: closers }, () => lane(false, insert)),
    ...Array.from({ length: lingerers }, () => lane(true, linger)),
  ];
  for (let cycle = 1; cycle <= cycles; cycle += 1) {
    await pause(serviceMs);
    const id = nextId();
    history.set(id, await restartOver(daemon, port, id, findings));
    if (cycle % progressCycles === 0) say(`${cycle} cycles: ${findings.counts()}`);
  }
  isOver = true;
  await Promise.all(lanes);

  const running = { pid: daemon.pid(), workers: daemon.workers, pidfile: daemon.pidfile };
  for (const what of await stopAndLook(running, database)) findings.breach(promises.left, what);
  const written = await countWritten(database);
  for (const what of contradictions(history, written)) findings.breach(promises.reported, what);
  const begun = requestIdsIn(daemon.log.replace(/\.log$/, '.access.log'));
  say(`in all: ${findings.counts()}; ${begun.size} requests in the access log`);
  for (const id of unanswered) {
    if (begun.has(nameOf(id))) findings.breach(promises.read, `${id} is in the access log`);
    else if (written.has(id)) findings.breach(promises.read, `${id} is in the table`);
  }
  await daemon.dispose();
  await database.stop();
  return findings.verdicts();
}

/** One cycle with a request in two halves: the gateway reads the first before the kill, the second follows it. */
async function restartOver(
  daemon: Daemon,
  port: number,
  id: number,
  findings: Findings,
): Promise<Reported> {
  const connection = await open(port);
  if ('kind' in connection) throw new Error(`cannot connect: ${connection.detail}`);
  const question = insert(id);
  const bytes = composeQuery(question.request, { requestId: nameOf(id) });
  const middle = 1 + (id % (bytes.length - 1));
  connection.send(bytes.slice(0, middle));
  const { localPort } = connection.socket;
  const isRead = () =>
    serverSockets(port).some(
      ({ clientPort, inode, unreadBytes }) =>
        clientPort === localPort && inode !== '0' && unreadBytes === 0,
    );
  await eventually('its first half is read', isRead, { everyMs: 50 });
  const before = daemon.pid();
  process.kill(before, 'SIGTERM');
  const started = daemon.start();
  await pause(100);
  connection.send(bytes.slice(middle));
  const ending = await readEnding(connection);
  connection.close();
  const excuses = { worker: false, database: false };
  const { reported, breach } = judgeEnding(question, ending, excuses);
  if (breach !== null) findings.breach(promises.half, breach.example);
  const { status } = await started;
  if (status !== 0 || daemon.findPid() === before) {
    findings.breach(promises.start, `exit ${status}, pid ${before}, then ${daemon.findPid()}`);
  }
  return reported;
}

function nameOf(id: number): string {
  return `soak-${id}`;
}

function requestIdsIn(path: string): ReadonlySet<string> {
  const found = readFileSync(path, 'latin1').matchAll(/"request_id":"([^"]+)"/g);
  return new Set([...found].map(([, id = '']) => id));
}
