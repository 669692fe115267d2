// The gateway's own counting and logging, driven without requests: what they cost when nothing else is measured with them.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openLog } from '../../src/shared/process/log.ts';
import type { OutgoingReply } from '../../src/worker/http/reply.ts';
import type { IncomingRequest } from '../../src/worker/http/request.ts';
import { openAccessLog } from '../../src/worker/observe/access-log.ts';
import { SectionMetrics, WorkerMetrics } from '../../src/worker/observe/metrics.ts';
import {
  type ExchangeSummary,
  type Observe,
  RequestRecord,
} from '../../src/worker/observe/observation.ts';
import { createRequestLog } from '../../src/worker/observe/request-log.ts';
import { StatementTable } from '../../src/worker/observe/statement-table.ts';
import { median } from '../support/statistics.ts';
import { isObserverSet, type ObserverSet } from './observer-set.ts';

// A busy worker: 10,000 requests a second, in bursts. A loop without a pause would never write, and would fill the buffer.
const burst = 200;
const pauseMs = 20;
const phaseMs = 400;
const pairs = 5;
// Enough of them that all code is compiled: a worker lives for days.
const warmBurst = 1000;
const warmPhases = 4;

const [, , wanted, path = ''] = process.argv;
if (!isObserverSet(wanted)) throw new Error('the first argument must name the observers');
const log = openLog('stderr', 'error', 'observing', 'batched');
const accessLog = openAccessLog('json', path);
const metrics = new WorkerMetrics(1024);
const sectionMetrics = new SectionMetrics('world', 1000);
const statements = new StatementTable();
const noteInLog = createRequestLog(log, 1000);
const count: Observe = (observation) => {
  if (observation.kind === 'statements finished') sectionMetrics.count(observation.summary);
  metrics.observe(observation);
  statements.observe(observation);
};
const observers: Readonly<Record<ObserverSet, Observe>> = {
  counting: count,
  observing: (observation) => {
    count(observation);
    noteInLog(observation);
    accessLog.observe(observation);
  },
};
const ignore: Observe = () => {};
const texts = Array.from({ length: 256 }, (_, number) =>
  Buffer.from(`select ID, Name, Population from City where ID = ${1000 + number}`).toString(),
);
let requests = 0;
let logged = 0;

/** The parts of a request and its reply that observers read. */
function createExchange() {
  const request = {
    method: 'GET',
    httpVersion: '1.1',
    headers: { host: '127.0.0.1:9090', 'user-agent': 'curl/8.5.0' },
    socket: { remoteAddress: '127.0.0.1' },
  };
  const response = {
    headersSent: true,
    statusCode: 200,
    bodyBytes: 183,
    failureCode: null,
    writableFinished: true,
  };
  return {
    request: request as unknown as IncomingRequest,
    response: response as unknown as OutgoingReply,
  };
}

/** All observations of a point query, from its head to its end. */
function observeRequest(observe: Observe): void {
  const { request, response } = createExchange();
  requests += 1;
  const requestId = `0123456789ab-${requests}`;
  const head = { requestId, endpoint: 'db', path: '/db', trace: null, origin: null } as const;
  const record = new RequestRecord(request, response, head, { needsAddresses: true, observe });
  record.statementsBegin();
  const summary: ExchangeSummary = {
    requestId: record.requestId,
    client: 'default',
    user: null,
    section: 'bench',
    named: null,
    traceId: record.traceId,
    status: 200,
    outcome: 'ok',
    code: null,
    errno: null,
    wasCut: false,
    clientGone: false,
    tool: null,
    isRead: true,
    rows: 1,
    bytes: 183,
    queueMs: 0,
    connectingMs: 0,
    databaseMs: 0.2 + (requests % 1000) / 1000,
    firstRowMs: 0.2 + (requests % 1000) / 1000,
    durationMs: performance.now() - record.startedAt + (requests % 100) / 10,
    sql: texts[requests % texts.length] as string,
  };
  observe({ kind: 'statements finished', summary });
  record.statementsEnded(summary);
  record.closed();
}

/** CPU of a phase in µs by its requests. */
async function runPhase(observe: Observe, each: number): Promise<number> {
  const end = performance.now() + phaseMs;
  const before = process.cpuUsage();
  let bursts = 0;
  for (; performance.now() < end; bursts += 1) {
    for (let index = 0; index < each; index += 1) observeRequest(observe);
    if (observe === observers.observing) logged += each;
    await sleep(pauseMs);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / bursts / each;
}

const observe = observers[wanted];
for (let phase = 0; phase < warmPhases; phase += 1) {
  await runPhase(ignore, warmBurst);
  await runPhase(observe, warmBurst);
}
const costs: number[] = [];
for (let pair = 0; pair < pairs; pair += 1) {
  const without = await runPhase(ignore, burst);
  costs.push((await runPhase(observe, burst)) - without);
}
await sleep(4 * pauseMs);
accessLog.flush();
const lines = readFileSync(path, 'latin1').split('\n').length - 1;
process.stdout.write(`${JSON.stringify({ usEach: median(costs), logged, lines })}\n`);
