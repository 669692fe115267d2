// The mixed run: a crowd of clients, faults by plan, a look every second, verdicts at the end.
//
// Flatness: every second what supervisor and workers hold is read; the median of the last quarter of the run may lie
// 5 % above that of the second. Only samples at least four seconds away from any fault count, and each quarter has the
// same faults at the same places. One worker is never struck: its memory is the one that is judged. V8 gives a heap
// its lasting size slowly, a supervisor's over some two thousand scrapes: they are made before the clock is started.
import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../../test/support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../test/support/gateway.ts';
import { contradictions, type Reported } from '../../test/support/histories/history.ts';
import { isAlive } from '../../test/support/processes.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';
import { type Desk, runCrowd } from './crowd.ts';
import { createStrike, FaultLog, planFaults } from './faults.ts';
import { judgeEnding, requestPromises } from './judgement.ts';
import { judgeWatch, watch } from './watch.ts';
import { countWritten, openDatabase, stopAndLook } from './world.ts';

const promises = {
  ...requestPromises,
  reported: 'the table agrees with what the reply to each write said',
  counters: 'counters never go backwards',
  scrape: '/metrics always answers',
  others: 'no worker ends but the one that is struck, and that is replaced in time',
  left: 'nothing is left after the stop',
} as const;

const scrapesAtFirst = 2_500;

/** Runs for this many minutes. Resolves to the verdicts. Calls `say` with lines of progress. */
export async function runMixed(minutes: number, say: (line: string) => void): Promise<Verdict[]> {
  const database = await openDatabase();
  const gateway = await startGateway({
    database,
    settings: { workers: 2, pool: 8 },
    detached: true,
  });
  const findings = new Findings(Object.values(promises));
  const faults = new FaultLog();
  const history = new Map<number, Reported>();
  const runMs = minutes * 60_000;
  if (minutes >= 1) await warmUp(gateway, say);
  const startedAt = performance.now();
  const endsAt = startedAt + runMs;
  let lastId = 0;
  const desk: Desk = {
    port: gateway.port,
    database: database.name,
    nextId: () => {
      lastId += 1;
      return lastId;
    },
    isOver: () => performance.now() > endsAt,
    note: (id, question, ending, fromMs) => {
      const excuses = faults.excusesFor(fromMs, performance.now());
      const { outcome, reported, breach } = judgeEnding(question, ending, excuses);
      findings.count(outcome);
      if (breach !== null) findings.breach(breach.promise, breach.example);
      if (question.writes === 'row') history.set(id, reported);
    },
  };
  const [veteran = 0] = gateway.workers();
  const run: Run = { gateway, database, veteran, findings, faults, startedAt };
  const watched = watch(
    { gateway, database, veteran, startedAt, endsAt },
    {
      counterFell: (counter) => findings.breach(promises.counters, counter),
      noAnswer: (reason, fromMs) => {
        // A connection that a worker had taken which was then killed.
        const excused = faults.excusesFor(fromMs, performance.now()).worker;
        if (!excused) findings.breach(promises.scrape, reason);
      },
      isQuiet: (fromMs) => faults.isQuiet(fromMs) && faults.isQuiet(performance.now()),
      progress: (holding) =>
        say(`${holding}; ${findings.breaches()} breaches; ${findings.counts()}`),
    },
  );
  const [seen] = await Promise.all([watched, runCrowd(desk), strikeByPlan(run, planFaults(runMs))]);

  if (!isAlive(veteran)) findings.breach(promises.others, 'the worker that was never struck');
  for (const what of await stopAndLook(gateway, database)) findings.breach(promises.left, what);
  for (const what of contradictions(history, await countWritten(database))) {
    findings.breach(promises.reported, what);
  }
  await gateway.stop();
  await database.stop();
  say(`in all: ${findings.counts()}`);
  return [...findings.verdicts(), ...judgeWatch(seen, runMs)];
}

async function warmUp(gateway: Gateway, say: (line: string) => void): Promise<void> {
  say(`${scrapesAtFirst} scrapes at first`);
  for (let made = 0; made < scrapesAtFirst; made += 1) await gateway.get('/metrics');
}

type Run = {
  readonly gateway: Gateway;
  readonly database: Database;
  readonly veteran: number;
  readonly findings: Findings;
  readonly faults: FaultLog;
  readonly startedAt: number;
};

async function strikeByPlan(run: Run, plan: ReturnType<typeof planFaults>): Promise<void> {
  const strike = createStrike(run.gateway, run.database, run.veteran);
  for (const { atMs, kind } of plan) {
    await pause(Math.max(0, run.startedAt + atMs - performance.now()));
    const over = run.faults.begin(kind, performance.now());
    run.findings.count(`fault: ${kind}`);
    await strike(kind).catch((error: Error) =>
      run.findings.breach(promises.others, `${kind}: ${error.message}`),
    );
    over(performance.now());
  }
}
