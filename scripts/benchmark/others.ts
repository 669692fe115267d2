// Measures what other programs take of the machine meanwhile: their CPU time, and what a host steals.
import { readFileSync } from 'node:fs';
import { readCpuUs, ticksPerSecond } from '../support/proc.ts';
import { measureAgain } from './machine.ts';

/** From this many cores on, a measurement was disturbed. */
export const disturbedCores = 0.25;

/** CPU time of all processes, and what the host took from this machine for others, in clock ticks; interrupts left out. */
export function parseMachine(text: string): { readonly busy: number; readonly stolen: number } {
  const [, ...fields] = (text.split('\n')[0] ?? '').trim().split(/\s+/);
  const field = (index: number): number => Number(fields[index] ?? 0);
  // user, nice, system, idle, iowait, irq, softirq, steal
  return { busy: field(0) + field(1) + field(2), stolen: field(7) };
}

/** CPU time used so far, of the whole machine and of those that take part, in µs. */
export type Moment = {
  readonly machineUs: number;
  readonly oursUs: number;
  readonly atMs: number;
};

/** Cores that others used on average from one moment to another; never below 0. */
export function countOthers(begun: Moment, ended: Moment): number {
  const machineUs = ended.machineUs - begun.machineUs;
  const oursUs = ended.oursUs - begun.oursUs;
  return Math.max(0, (machineUs - oursUs) / ((ended.atMs - begun.atMs) * 1e3));
}

/**
 * Begins to watch.
 * @param ours roots of the processes that take part
 * @returns a function that computes how many cores other programs have used since then
 */
export function watchOthers(ours: readonly number[]): () => number {
  const read = (): Moment => {
    const { busy, stolen } = parseMachine(readFileSync('/proc/stat', 'utf8'));
    const machineUs = ((busy + stolen) / ticksPerSecond) * 1e6;
    return { machineUs, oursUs: readCpuUs(ours), atMs: performance.now() };
  };
  const begun = read();
  return () => countOthers(begun, read());
}

/** One warning about all measurements that were disturbed; empty without any. */
export function warnOfOthers(cores: readonly number[]): string {
  const disturbed = cores.filter((each) => each > disturbedCores);
  if (disturbed.length === 0) return '';
  const most = Math.max(...disturbed).toFixed(1);
  return `others used the machine during ${disturbed.length} of ${cores.length} measurements (up to ${most} cores): ${measureAgain}\n`;
}
