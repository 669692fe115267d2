// The table of targets. A figure is good from its first limit on; the aim is the second.
import type { GaugeId } from './gauges.ts';
import type { Constant, Peer } from './peers.ts';
import type { Summary } from './rounds.ts';

/** The figures of a cell that a target may use. */
export type Figure = Exclude<keyof Summary, 'rounds' | 'errors' | 'othersCores'>;

/** The source of a measured number: a gauge, or a peer's figure in a cell, alone or compared with another peer's. */
export type Source =
  | { readonly kind: 'gauge'; readonly gauge: GaugeId }
  | {
      readonly kind: 'figure' | 'ratio' | 'difference';
      readonly cell: string;
      readonly figure: Figure;
      readonly of: Peer;
      readonly to: Peer | null;
    };

/** A number with its limits; null: no limit. */
export type Target = {
  readonly title: string;
  readonly source: Source;
  readonly compare: 'at least' | 'at most';
  readonly good: number | null;
  readonly aim: number | null;
  readonly unit: '×' | 'ms' | 'MB' | 'MB/s' | 'µs' | 'KiB';
  /** A number that decides nothing and belongs beside this one. */
  readonly beside: { readonly title: string; readonly source: Source } | null;
  /** The constant that shows how far any gateway on node:http could come in this cell, for a ratio of requests/s; null if there is none. */
  readonly ceiling: Constant | null;
};

function ratio(cell: string, figure: Figure, to: Peer, of: Peer = 'gateway'): Source {
  return { kind: 'ratio', cell, figure, of, to };
}

function figure(cell: string, name: Figure): Source {
  return { kind: 'figure', cell, figure: name, of: 'gateway', to: null };
}

type Limits = Pick<Target, 'compare' | 'good' | 'aim'>;

const atLeast = (good: number | null, aim: number | null): Limits => ({
  compare: 'at least',
  good,
  aim,
});

const atMost = (good: number | null, aim: number | null): Limits => ({
  compare: 'at most',
  good,
  aim,
});

function row(
  title: string,
  source: Source,
  limits: Limits,
  unit: Target['unit'] = '×',
  beside: Target['beside'] = null,
): Target {
  return { title, source, ...limits, unit, beside, ceiling: null };
}

function under(ceiling: Constant, target: Target): Target {
  return { ...target, ceiling };
}

/** The peer is one that can be written in an afternoon. The tuned one is shown beside it. */
function againstFastify(title: string, cell: string, name: Figure, limits: Limits): Target {
  const beside = { title: 'tuned', source: ratio(cell, name, 'fastify-tuned') };
  return row(title, ratio(cell, name, 'fastify'), limits, '×', beside);
}

const accessLogAlone: Source = {
  kind: 'difference',
  cell: 'point/64',
  figure: 'cpuUs',
  of: 'gateway',
  to: 'gateway-unlogged',
};

export const targets: readonly Target[] = [
  row(
    'point query, 64: gateway CPU ÷ node:http constant',
    ratio('point/64', 'cpuUs', 'constant'),
    atMost(2.2, 1.5),
  ),
  under(
    'constant',
    againstFastify(
      'point query, 64: requests/s ÷ fastify',
      'point/64',
      'perSecond',
      atLeast(2.8, 4),
    ),
  ),
  under(
    'constant',
    row(
      'point query, 64: requests/s ÷ C client, both over TCP',
      ratio('point/64', 'perSecond', 'client'),
      atLeast(0.6, null),
    ),
  ),
  under(
    'constant',
    row(
      'point query, 64: the same, both over a unix socket',
      ratio('point/64', 'perSecond', 'client-unix', 'gateway-unix'),
      atLeast(null, 1),
      '×',
      {
        title: 'C client over TCP',
        source: ratio('point/64', 'perSecond', 'client', 'gateway-unix'),
      },
    ),
  ),
  under(
    'constant-none',
    row(
      'point query, 48 closing: requests/s ÷ node:http constant, SCHED_NONE',
      ratio('point/48-close', 'perSecond', 'constant-none'),
      atLeast(0.8, 0.9),
    ),
  ),
  under(
    'constant',
    row(
      '10-row join, 16: requests/s ÷ C client',
      ratio('join/16', 'perSecond', 'client'),
      atLeast(0.95, 1),
      '×',
      {
        title: 'both over a unix socket',
        source: ratio('join/16', 'perSecond', 'client-unix', 'gateway-unix'),
      },
    ),
  ),
  againstFastify(
    '1,000 rows, 16: requests/s ÷ fastify',
    'thousand/16',
    'perSecond',
    atLeast(4, 4.8),
  ),
  againstFastify(
    '1,000 rows, 16: gateway CPU ÷ fastify',
    'thousand/16',
    'cpuUs',
    atMost(1 / 8, 1 / 14),
  ),
  row('25 MB: first byte', figure('bulk/1', 'firstByteMs'), atMost(10, 5), 'ms'),
  row(
    '25 MB: total time ÷ C fetch loop without JSON',
    ratio('bulk/1', 'p50Ms', 'client'),
    atMost(1.3, 1.15),
  ),
  againstFastify('25 MB: total time ÷ fastify', 'bulk/1', 'p50Ms', atMost(0.25, null)),
  row(
    '25 MB to 8 readers: by second of one core of the gateway',
    figure('bulk/8', 'mbPerCpuSecond'),
    atLeast(250, 500),
    'MB/s',
  ),
  row('25 MB to 8 readers: memory growth', figure('bulk/8', 'growthMb'), atMost(25, 5), 'MB'),
  under(
    'constant',
    againstFastify(
      'insert, 16: requests/s ÷ fastify',
      'insert/16',
      'perSecond',
      atLeast(1.3, null),
    ),
  ),
  under(
    'constant',
    row(
      'insert, 16: requests/s ÷ C client',
      ratio('insert/16', 'perSecond', 'client'),
      atLeast(null, 0.6),
    ),
  ),
  ...(['point/64', 'thousand/16', 'insert/16'] as const).map((cell) =>
    row(
      `${cell}: gateway CPU of /v1/query ÷ /db, both by POST`,
      ratio(cell, 'cpuUs', 'gateway-post', 'gateway-v1'),
      atMost(1.1, null),
    ),
  ),
  row(
    'point/64: gateway CPU of /v1/named ÷ /v1/query',
    ratio('point/64', 'cpuUs', 'gateway-v1', 'gateway-named'),
    atMost(1.1, null),
  ),
  row(
    'batch of three writes, 16: requests/s ÷ fastify, BEGIN to COMMIT by hand',
    ratio('batch/16', 'perSecond', 'fastify', 'gateway-v1'),
    atLeast(1.3, null),
    '×',
    { title: 'tuned', source: ratio('batch/16', 'perSecond', 'fastify-tuned', 'gateway-v1') },
  ),
  row(
    'the same batch with an Idempotency-Key: gateway CPU ÷ without',
    ratio('batch/16', 'cpuUs', 'gateway-v1', 'gateway-keys'),
    atMost(1.5, null),
    '×',
    {
      title: 'requests/s',
      source: ratio('batch/16', 'perSecond', 'gateway-v1', 'gateway-keys'),
    },
  ),
  againstFastify('point query, 256: p99 ÷ fastify', 'point/256', 'p99Ms', atMost(0.5, 0.25)),
  row(
    'metrics and digests, a request',
    { kind: 'gauge', gauge: 'counting' },
    atMost(1, null),
    'µs',
  ),
  row(
    'metrics and access log, a request',
    { kind: 'gauge', gauge: 'observing' },
    atMost(3, 1.5),
    'µs',
    { title: 'the log alone, under load', source: accessLogAlone },
  ),
  row('idle keep-alive connection, each', { kind: 'gauge', gauge: 'idle' }, atMost(20, 8), 'KiB'),
];
