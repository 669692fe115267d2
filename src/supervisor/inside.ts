// What an instance knows of itself: what its workers report is kept here, and what they ask for people is answered.
// Must not know how slots are filled, nor how an answer is shown.

import type { Sections } from '../shared/config/config.ts';
import type { ToldStatements } from '../shared/observe/statement-sums.ts';
import type { ServerVerdict, Stats, ToldRequests } from '../shared/observe/stats.ts';
import type { Answerers } from '../shared/process/calls.ts';
import type { SupervisorCalls, WorkerCalls, WorkerReport } from '../shared/process/messages.ts';
import type { CommitMemory } from './commit-memory.ts';
import { joinRequests, parseRequestName } from './observe/live-requests.ts';
import { StatementTotals, statementIntervalMs } from './observe/statement-totals.ts';
import {
  describeInstance,
  History,
  historyIntervalMs,
  RecentErrors,
  readFigures,
  type SlotState,
} from './observe/stats.ts';
import { createTotals, measureOwnFigures } from './observe/totals.ts';
import type { PrimaryMemories } from './primary/primary-memories.ts';
import type { Slot } from './slot.ts';

/** One instance's. */
export type Inside = {
  readonly answerers: Answerers<SupervisorCalls>;
  /** A living worker reports. */
  readonly report: (slot: number, report: WorkerReport) => void;
  /** A worker is gone: what it has counted stays. */
  readonly retire: (slot: number) => void;
  /** What the workers counted and no scrape has told. */
  readonly unseen: () => Readonly<Record<string, number>>;
  readonly close: () => void;
};

/** What it is told of. */
export type InsideSources = {
  /** The first one names the instance. */
  readonly sections: Sections;
  readonly slots: () => readonly Slot[];
  readonly commits: CommitMemory;
  readonly primaries: PrimaryMemories;
  readonly logLinesLost: () => number;
};

/** Begins to keep it; the caller must close it. */
export function createInside({
  sections,
  slots,
  commits,
  primaries,
  logLinesLost,
}: InsideSources): Inside {
  const totals = createTotals(sections[0].section);
  const ownFigures = measureOwnFigures();
  const history = new History();
  const errors = new RecentErrors();
  const verdicts = new Map<number, readonly ServerVerdict[]>();
  const statements = new StatementTotals(Date.now());
  const timers = [
    setInterval(() => history.note(readFigures(totals.reported()), Date.now()), historyIntervalMs),
    setInterval(() => statements.beginPoint(Date.now()), statementIntervalMs),
  ];
  for (const timer of timers) timer.unref();

  const renderMetrics = async (): Promise<string> => {
    const answers = await askAll(slots(), 'report', null);
    const silent = answers.filter(({ answer }) => answer === null).length;
    return totals.render({
      slots: slots().map(stateOf),
      silent,
      logLinesLost: logLinesLost(),
      primariesUnsaved: primaries.unsaved(),
      startedAt: performance.timeOrigin / 1000,
      own: ownFigures(),
    });
  };

  const describe = async (): Promise<Stats> => {
    // Whether a worker is ready is looked up when it is asked.
    await askAll(slots(), 'report', null);
    return describeInstance({
      sections,
      slots: slots().map(stateOf),
      reported: totals.reported(),
      verdicts: [...verdicts.values()].flat(),
      history: history.told(),
      errors: errors.latest,
    });
  };

  const listRequests = async (): Promise<ToldRequests> => {
    const answers = await askAll(slots(), 'requests', null);
    return joinRequests(
      answers.map(({ slot, pid, answer }) => ({ slot: slot.number, pid, told: answer })),
    );
  };

  const listStatements = async (): Promise<ToldStatements> => {
    // What came in the last second is told too.
    await askAll(slots(), 'report', null);
    return statements.told();
  };

  const kill = async (text: string): Promise<{ readonly isFound: boolean }> => {
    const name = parseRequestName(text);
    const slot = slots().find(({ number, pid }) => number === name?.slot && pid() === name.pid);
    if (name === null || slot === undefined) return { isFound: false };
    const answer = await slot.ask('kill', name.id);
    if (answer === null) throw new Error('the worker did not answer in time');
    return answer;
  };

  return {
    answerers: {
      metrics: sharing(renderMetrics),
      stats: sharing(describe),
      requests: sharing(listRequests),
      statements: sharing(listStatements),
      kill,
      noteCommit: ({ name, ending }) => {
        commits.note(name, ending);
        return true;
      },
      endingOfCommit: (name) => commits.of(name),
      proposePrimary: primaries.propose,
    },
    report: (slot, report) => {
      totals.update(slot, report.snapshot);
      errors.add(slot, report.errors);
      verdicts.set(slot, report.verdicts);
      if (report.statements !== null) statements.add(report.statements);
    },
    retire: (slot) => {
      totals.retire(slot);
      verdicts.delete(slot);
    },
    unseen: totals.unseen,
    close: () => {
      for (const timer of timers) clearInterval(timer);
    },
  };
}

/** Those who ask at one time share one answer. */
function sharing<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let underWay: Promise<Answer> | null = null;
  return () => {
    underWay ??= ask().finally(() => {
      underWay = null;
    });
    return underWay;
  };
}

type SlotsAnswer<Name extends keyof WorkerCalls> = {
  readonly slot: Slot;
  readonly pid: number;
  /** Null: it has not answered in time. */
  readonly answer: WorkerCalls[Name]['answer'] | null;
};

/** Asks every worker that listens, and leaves out who died meanwhile. */
async function askAll<Name extends keyof WorkerCalls>(
  slots: readonly Slot[],
  name: Name,
  asked: WorkerCalls[Name]['asked'],
): Promise<readonly SlotsAnswer<Name>[]> {
  const listening = slots.filter((slot) => slot.isListening());
  const answers = await Promise.all(
    listening.map(async (slot) => {
      const pid = slot.pid() ?? 0;
      const answer = slot.isSilent() ? null : await slot.ask(name, asked);
      return { slot, pid, answer };
    }),
  );
  return answers.filter(({ slot, pid, answer }) => answer !== null || slot.pid() === pid);
}

function stateOf(slot: Slot): SlotState {
  return {
    slot: slot.number,
    pid: slot.pid(),
    state: workerState(slot),
    restarts: slot.restarts(),
    runsOtherCode: slot.runsOtherCode(),
    requestsLost: slot.requestsLost(),
  };
}

function workerState(slot: Slot): SlotState['state'] {
  if (slot.isEmpty()) return 'down';
  if (!slot.isListening()) return 'starting';
  return slot.isSilent() ? 'silent' : 'serving';
}
