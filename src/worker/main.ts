// A worker process: its supervisor boots it, it serves on the inherited socket, drains on command, and ends if it is left alone.
import '../shared/process/ignored-signals.ts';
import './tick-objects.ts';
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Config } from '../shared/config/config.ts';
import { type EventLoopLag, measureEventLoopLag } from '../shared/observe/event-loop-lag.ts';
import type { HistogramSample, Sample, Snapshot } from '../shared/observe/metrics.ts';
import { readBuild } from '../shared/process/build.ts';
import { type Answerers, answerCall, Caller } from '../shared/process/calls.ts';
import { type ExitCode, exitCodes } from '../shared/process/exit-codes.ts';
import { listenOn } from '../shared/process/listening-socket.ts';
import { type Log, type OwnedLog, openLog, whereThrown } from '../shared/process/log.ts';
import {
  inheritedSocket,
  type KilledRequests,
  type LogDestination,
  type SupervisorCalls,
  type ToSupervisor,
  type ToWorker,
  type WorkerCalls,
} from '../shared/process/messages.ts';
import { easeSocketCreation } from './http/socket-creation.ts';
import { type AccessLog, accessLogPath, openAccessLog, stdout } from './observe/access-log.ts';
import { contextFields } from './observe/request-log.ts';
import { Service } from './service.ts';
import { startWatchdog } from './watchdog.ts';

type Boot = Extract<ToWorker, { readonly kind: 'boot' }>;

type Running = {
  readonly service: Service;
  readonly log: OwnedLog;
  readonly accessLog: AccessLog | null;
  readonly lag: EventLoopLag;
  isDraining: boolean;
};

const crashStatus = 70;
const reportMs = 1000;
/** A scrape waits for at most a second. If the supervisor takes longer than this, the reply is that there are no metrics. */
const answerBoundMs = 950;
const supervisor = new Caller<SupervisorCalls>(send, answerBoundMs);
const answerers: Answerers<WorkerCalls> = {
  report: async (): Promise<true> => {
    await running?.service.settle();
    report();
    return true;
  },
  requests: (owner) =>
    running?.service.live.list(performance.now(), owner) ?? { requests: [], omitted: 0 },
  kill: (asked) => {
    const killed = running?.service.live.kill(asked) ?? [];
    for (const exchange of killed) {
      const fields = { request: exchange.requestId, ...contextFields(exchange) };
      running?.log.info(describeEnd(asked), fields);
    }
    return { isFound: killed.length > 0 };
  },
};
function describeEnd({ by, owner }: KilledRequests): string {
  if (by === 'request id') return 'a request was ended by its X-Request-ID';
  return owner === null ? 'an operator ended a request' : 'a client ended its own request';
}

let running: Running | null = null;
/** Read at once, because the parent is another process when the supervisor is gone. */
const supervisorPid = process.ppid;

process.on('exit', () => {
  running?.accessLog?.flush();
  running?.log.flush();
});
process.on('uncaughtException', (error) => crash('uncaught exception', error));
process.on('unhandledRejection', (error) => crash('unhandled rejection', error));
// Before node:cluster's own listener, which ends the process without a line in the log.
process.prependListener('disconnect', () => {
  const live = running?.service.live.list(performance.now());
  const requests = (live?.requests.length ?? 0) + (live?.omitted ?? 0);
  running?.log.error('the supervisor is gone: this worker ends, and so do its requests', {
    supervisor: supervisorPid,
    requests,
  });
  process.exit(crashStatus);
});
// A terminal or a service manager sends it to the whole group, where it means the same as the supervisor's command. If it is sent to this
// worker alone, the others keep the socket.
process.on('SIGTERM', () => drain(true));
process.on('SIGINT', () => drain(true));
process.on('SIGQUIT', () => drain(true));
// A hangup goes to the whole group. The supervisor alone reads what it asks for, and then sends a message.
process.on('SIGHUP', () => {});
process.on('message', (message: ToWorker) => receive(message));
// Before anything else: no worker may outlive its supervisor.
await startWatchdog((reason) => crash('the watchdog failed', new Error(reason)));
easeSocketCreation();
send({ kind: 'ready', build: readBuild() });

function receive(message: ToWorker): void {
  switch (message.kind) {
    case 'boot':
      boot(message);
      return;
    case 'drain':
      drain(message.socketStays);
      return;
    case 'stop now':
      stopNow();
      return;
    case 'reopen logs':
      reopenLogs();
      return;
    case 'renew':
      running?.service.renew(message);
      return;
    case 'tables changed':
      running?.service.tablesChanged();
      return;
    case 'primary memory':
      running?.service.rememberPrimary(message.section, message.memory);
      return;
    case 'ping':
      send({ kind: 'pong', sequence: message.sequence });
      return;
    case 'call':
      void answerCall(answerers, message, send, (name, cause) =>
        running?.log.error('a question was not answered', { name, thrown: whereThrown(cause) }),
      );
      return;
    case 'answer':
      supervisor.answered(message);
      return;
    default:
      message satisfies never;
  }
}

function boot({ sections, slot, logTo, transactionKey, primaries, named }: Boot): void {
  try {
    for (const section of sections) Object.freeze(section);
    const [config] = sections;
    process.title = `dbhttpd: worker ${slot} ${config.section}`;
    const target = logTo === 'stderr' ? logTo : { path: config.log };
    const log = openLog(target, config.logLevel, `${process.pid} w${slot}`, 'batched');
    const accessLog = createAccessLog(config, log, logTo);
    const service = new Service({
      sections,
      log,
      accessLog,
      supervisor,
      owner: {
        pid: process.pid,
        incarnation: randomBytes(8).toString('hex'),
        key: Buffer.from(transactionKey, 'base64'),
      },
      reportTablesChanged: () => send({ kind: 'tables changed' }),
      primaries,
      named,
    });
    running = { service, log, accessLog, lag: measureEventLoopLag(), isDraining: false };
    service.acceptForwarded();
    attach(service, log, config.listen.kind);
    setInterval(report, reportMs).unref();
  } catch (error) {
    fail(error);
  }
}

function createAccessLog(config: Config, log: Log, logTo: LogDestination): AccessLog | null {
  if (config.accessLog === 'off') return null;
  const target = logTo === 'stderr' ? stdout : accessLogPath(config.log);
  return openAccessLog(
    config.accessLog,
    target,
    (reason) => log.warn('cannot open the access log: its lines are lost', { reason }),
    (lines) => log.warn('lines of the access log were lost', { lines }),
  );
}

function reopenLogs(): void {
  running?.log.reopen();
  const problem = running?.accessLog?.reopen() ?? null;
  if (problem !== null) running?.log.warn('cannot reopen the access log', { reason: problem });
}

function attach({ server }: Service, log: OwnedLog, kind: 'tcp' | 'unix'): void {
  let lastLogged = Number.NEGATIVE_INFINITY;
  server.once('error', fail);
  server.once('listening', () => {
    server.off('error', fail);
    // From here on an error is one connection that could not be accepted (no descriptor is left): the worker goes on.
    server.on('error', (error) => {
      if (performance.now() - lastLogged < reportMs) return;
      lastLogged = performance.now();
      log.warn('cannot accept connections', { reason: error.message });
    });
    send({ kind: 'listening' });
  });
  listenOn(server, inheritedSocket, kind);
}

/** Reports a start that would fail again. */
function fail(error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error);
  send({ kind: 'failed', exitCode: exitCodes.unavailable, reason }, () =>
    end(exitCodes.unavailable),
  );
}

function drain(socketStays: boolean): void {
  if (running === null) end(exitCodes.ok);
  if (running.isDraining) return;
  running.isDraining = true;
  // Once the listener is closed a successor may bind the address.
  const drained = running.service.drain(socketStays, () => send({ kind: 'closed' }));
  drained.then(
    () => report(() => end(exitCodes.ok)),
    (error: unknown) => crash('draining failed', error),
  );
}

/** A second order to stop, or a drain that has reached its bound. */
function stopNow(): void {
  if (running === null) end(exitCodes.ok);
  running.isDraining = true;
  const { service } = running;
  const finish = () => {
    service.cutConnections();
    end(exitCodes.ok);
  };
  service.stopNow().then(
    () => report(finish),
    (error: unknown) => crash('the stop failed', error),
  );
}

function report(sent?: () => void): void {
  if (running === null) return;
  const { samples, histograms } = running.service.snapshot();
  const { log, accessLog, lag } = running;
  const own: readonly Sample[] = [
    { metric: 'dbhttpd_log_lines_lost_total', labels: {}, value: log.lost() },
    {
      metric: 'dbhttpd_access_log_lines_lost_total',
      labels: {},
      value: accessLog?.lost() ?? 0,
    },
    { metric: 'dbhttpd_event_loop_lag_max_seconds', labels: {}, value: lag.longest() },
  ];
  const lags: HistogramSample = {
    metric: 'dbhttpd_event_loop_lag_seconds',
    labels: {},
    ...lag.histogram.read(),
  };
  const snapshot: Snapshot = {
    samples: [...samples, ...own],
    histograms: [...histograms, lags],
  };
  const errors = running.service.takeErrors();
  const verdicts = running.service.verdicts();
  const statements = running.service.takeStatements();
  send({ kind: 'report', report: { snapshot, errors, verdicts, statements } }, sent);
}

function send(message: ToSupervisor, sent: () => void = () => {}): void {
  // A lost channel has its own event, which ends this process.
  if (process.connected) process.send?.(message, undefined, undefined, sent);
  else sent();
}

function crash(what: string, error: unknown): void {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  running?.log.error(what, { stack });
  // Before there is a log, the supervisor copies stderr into its own.
  if (running === null) process.stderr.write(`${what}: ${stack}\n`);
  process.exit(crashStatus);
}

function end(exitCode: ExitCode): never {
  process.exit(exitCode);
}
