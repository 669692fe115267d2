// Measurements with their own procedures, beside the loads: each once a round.

import { median } from '../support/statistics.ts';
import type { Database } from './database.ts';
import { measureDrivers } from './drivers.ts';
import { measureIdleConnections } from './idle.ts';
import { measureObserving } from './observing.ts';
import type { Reading } from './reading.ts';

/** A figure with its procedure. */
export type Gauge = {
  readonly id: GaugeId;
  readonly title: string;
  readonly unit: string;
  readonly read: (database: Database, signal: AbortSignal) => Promise<Reading>;
};

export const gaugeIds = ['idle', 'counting', 'observing', 'drivers'] as const;

export type GaugeId = (typeof gaugeIds)[number];

export const gauges: readonly Gauge[] = [
  {
    id: 'idle',
    title: 'memory of an idle keep-alive connection',
    unit: 'KiB',
    read: measureIdleConnections,
  },
  {
    id: 'counting',
    title: 'metrics and digests of a request',
    unit: 'µs',
    read: (_database, signal) => measureObserving('counting', signal),
  },
  {
    id: 'observing',
    title: 'metrics, digests and access log of a request',
    unit: 'µs',
    read: (_database, signal) => measureObserving('observing', signal),
  },
  {
    id: 'drivers',
    title: 'point queries by @planetscale/database, 32 at once from one process',
    unit: 'a second',
    read: measureDrivers,
  },
];

/** The readings of a gauge, in the order of the rounds. */
export type GaugeResult = { readonly gauge: Gauge; readonly readings: readonly Reading[] };

/** The middle of the readings; NaN where one had errors. */
export function middle({ readings }: GaugeResult): number {
  const isGood = readings.every(({ errors }) => errors === 0);
  return isGood ? median(readings.map(({ value }) => value)) : Number.NaN;
}
