// The workers, slot by slot.
import type { Stats, WorkerStats } from './ask.ts';
import { setText } from './elements.ts';
import { formatBytes, formatCount, formatShare, formatSpan, unknown } from './format.ts';
import { openPart, type Part } from './part.ts';
import { asText, type Column, createTable } from './table.ts';

/** A part that shows something of the instance. */
export type StatsPart = { readonly part: Part; readonly show: (stats: Stats) => void };

/** Takes the part of the workers. */
export function openWorkers(): StatsPart {
  const part = openPart('workers');
  const usage = new ProcessorUse();
  const table = createTable('Workers', columnsOf(usage), ({ slot }) => String(slot));
  part.body.append(table.frame);
  return {
    part,
    show: ({ workers, now }) => {
      usage.note(workers, new Date(now).getTime());
      table.update(workers);
      const restarts = workers.reduce((total, one) => total + one.restarts, 0);
      if (workers.length === 0) part.empty('There are no workers.');
      else part.shown(`${formatCount(workers.length)}, ${describeRestarts(restarts)}`);
    },
  };
}

function describeRestarts(restarts: number): string {
  if (restarts === 0) return 'none was ever restarted';
  return restarts === 1 ? 'one restart' : `${formatCount(restarts)} restarts`;
}

const tones = { serving: 'good', starting: 'warn', silent: 'bad', down: 'bad' } as const;

function columnsOf(usage: ProcessorUse): readonly Column<WorkerStats>[] {
  const count = (name: string, value: (worker: WorkerStats) => number): Column<WorkerStats> => ({
    name,
    kind: 'number',
    show: asText((worker) => formatCount(value(worker))),
  });
  return [
    { name: 'Slot', kind: 'number', show: asText(({ slot }) => String(slot)) },
    {
      name: 'State',
      show: ({ state, ready, unready, runs_other_code }, cell) => {
        const words = [
          state,
          ...(ready ? [] : [unready === null ? 'not ready' : `not ready: ${unready}`]),
          ...(runs_other_code ? ['other version'] : []),
        ];
        setText(cell, words.join(', '));
        cell.className = `tone ${state === 'serving' && !ready ? 'bad' : (tones[state] ?? 'warn')}`;
      },
    },
    {
      name: 'Pid',
      kind: 'number',
      show: asText(({ pid }) => (pid === null ? unknown : String(pid))),
    },
    count('In flight', ({ requests_in_flight }) => requests_in_flight),
    count('Clients', ({ client_connections }) => client_connections),
    { name: 'CPU', kind: 'number', show: asText((worker) => formatShare(usage.of(worker))) },
    {
      name: 'Memory',
      kind: 'number',
      show: asText(({ memory_bytes }) => formatBytes(memory_bytes)),
    },
    {
      name: 'Loop lag',
      kind: 'number',
      show: asText(({ event_loop_lag_ms: ms }) => (ms === null ? unknown : formatSpan(ms))),
    },
    count('Restarts', ({ restarts }) => restarts),
  ];
}

/** How much of one processor each process used between two answers. */
class ProcessorUse {
  #before = new Map<number | null, { readonly seconds: number; readonly share: number | null }>();
  #notedAt = 0;

  note(workers: readonly WorkerStats[], now: number): void {
    const passed = (now - this.#notedAt) / 1000;
    if (passed <= 0) return;
    const told = workers.map(({ pid, cpu_seconds: seconds }) => {
      const before = this.#before.get(pid);
      const share = before === undefined ? null : Math.max(0, seconds - before.seconds) / passed;
      return [pid, { seconds, share }] as const;
    });
    this.#before = new Map(told);
    this.#notedAt = now;
  }

  of({ pid }: WorkerStats): number | null {
    return this.#before.get(pid)?.share ?? null;
  }
}
