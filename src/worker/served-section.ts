// One section with all that endpoints need to serve it, and what is counted of it.
// Must not know the endpoints, nor the other sections.
import { performance } from 'node:perf_hooks';
import type { Sample } from '../shared/observe/metrics.ts';
import type { ServerVerdict } from '../shared/observe/stats.ts';
import type { Log, LogFields } from '../shared/process/log.ts';
import { asciiJson } from './encode/json.ts';
import type { RowModule } from './encode/row-module.ts';
import type { Served } from './endpoints/served-sections.ts';
import { SlowReaders } from './http/slow-readers.ts';
import {
  backendSamples,
  noPrimarySamples,
  SectionMetrics,
  sample,
  statusSamples,
} from './observe/metrics.ts';
import type { Observe } from './observe/observation.ts';
import { Overload } from './observe/overload.ts';
import { createTokens } from './request/consistency-tokens.ts';
import type { ExchangeContext } from './request/exchange.ts';
import type { Section } from './section.ts';
import type { Server } from './servers/server.ts';

/** What all sections of a worker share. */
export type SharedBySections = Pick<ExchangeContext, 'live' | 'peers' | 'buffers' | 'holdBytes'> & {
  readonly rowModule: RowModule | null;
  readonly slowQueryMs: number;
  readonly observe: Observe;
  readonly log: Log;
};

/** A section as it is served. */
export class ServedSection implements Served {
  readonly config: Served['config'];
  readonly context: Served['context'];
  readonly section: Section;
  readonly #metrics: SectionMetrics;
  readonly #overload: Overload;
  #closing: Promise<void> | null = null;

  constructor(section: Section, shared: SharedBySections) {
    const { live, peers, buffers, holdBytes, rowModule, slowQueryMs, observe, log } = shared;
    const metrics = new SectionMetrics(section.config.section, slowQueryMs);
    const onGivenUp = (count: number) => {
      metrics.readersGivenUp += count;
    };
    const { sessionKey } = section.config;
    const key = sessionKey === null ? null : Buffer.from(sessionKey, 'base64');
    const tokens = section.servers === null ? null : createTokens(key);
    this.config = section.config;
    this.section = section;
    this.#metrics = metrics;
    this.#overload = new Overload(log, () => describeLoad(section));
    const { transactionIdleTimeoutMs: idleMs, transactionTimeoutMs: totalMs } = section.config;
    this.context = {
      home: {
        section: section.config.section,
        executor: section.executor,
        times: { idleMs, totalMs },
        onEnd: (end) => metrics.transactionEnded(end),
      },
      executor: section.executor,
      tokens,
      catalogue: () => section.leading.catalogue,
      live,
      peers,
      section: section.config.section,
      buffers,
      rowModule,
      sectionJson: asciiJson(section.config.section),
      holdBytes,
      retryAfterSeconds: () => section.leading.retryAfterSeconds,
      mostStatementBytes: () => section.leading.maxStatementBytes,
      slowReaders: createSlowReaders(section.all, onGivenUp, log),
      observe: (observation) => {
        if (observation.kind === 'statements over') {
          metrics.count(observation.summary);
          this.#overload.observe(observation.summary.code, performance.now());
        }
        observe(observation);
      },
    };
  }

  /** What a worker has to say of it. @param isStopping it serves nothing new, whatever its servers say */
  snapshot(isStopping: boolean) {
    const { section } = this;
    const readiness = isStopping ? stopping : section.readiness;
    const name = section.config.section;
    const backends = section.contexts.flatMap(({ server, pipeline }) =>
      backendSamples(name, server.observations(), pipeline?.observations()),
    );
    return {
      samples: [
        ...this.#metrics.samples(readiness, section.coalesced),
        ...backends,
        ...this.#statuses(),
      ],
      histograms: this.#metrics.histograms(),
    };
  }

  /** Closes what is idle, and resolves when nothing is open any more. Idempotent. */
  close(): Promise<void> {
    this.#overload.end();
    this.#closing ??= this.section.close();
    return this.#closing;
  }

  /** What it makes of each of several servers, and why; nothing where there is one. */
  verdicts(): readonly ServerVerdict[] {
    const { servers, config, all } = this.section;
    if (servers === null) return [];
    return all.map(({ address }, at) => {
      const { role, reason } = servers.statusOf(at);
      return { section: config.section, backend: address, role, reason };
    });
  }

  /** What each of several servers is; nothing where there is one. */
  #statuses(): readonly Sample[] {
    const { servers, config, all } = this.section;
    const { section } = config;
    if (servers === null) return [];
    return [
      sample('dbhttpd_two_primaries', servers.isContested ? 1 : 0, { section }),
      ...noPrimarySamples(section, servers.none),
      ...all.flatMap(({ address }, at) => statusSamples(section, address, servers.statusOf(at))),
    ];
  }
}

/** What the log says of the load beside what was rejected. */
function describeLoad({ config, all: servers }: Section): LogFields {
  const loads = servers.map(({ pool }) => pool.observations());
  const sum = (of: 'waiting' | 'busy' | 'size') => loads.reduce((all, load) => all + load[of], 0);
  const { section } = config;
  return { section, waiting: sum('waiting'), busy: sum('busy'), pool: sum('size') };
}

/** What is told of readiness while the gateway stops. */
export const stopping = { isReady: false, code: 'STOPPING', errno: null } as const;

/** Readers that are given up are told in the log so often at most. */
const stalledLogMs = 10_000;

/** Readers that are slow, and transactions that clients hold, keep half of a pool at most from those who wait. */
export function createSlowReaders(
  servers: readonly Server[],
  onGivenUp: (count: number) => void,
  log: Log,
): SlowReaders {
  let lastTold = Number.NEGATIVE_INFINITY;
  let untold = 0;
  return new SlowReaders({
    othersWait: () => servers.some(({ pool }) => pool.queue.length > 0),
    maxSessions: () => Math.max(0, Math.min(...servers.map(({ reserved }) => reserved.room))),
    onGivenUp: (count) => {
      onGivenUp(count);
      untold += count;
      const now = performance.now();
      if (now - lastTold < stalledLogMs) return;
      log.warn('slow readers held connections while requests waited', {
        reset: untold,
        pool: servers[0]?.pool.size ?? 0,
      });
      lastTold = now;
      untold = 0;
    },
  });
}
