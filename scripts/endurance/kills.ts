// kill -9 of a worker every second under 32 clients: only its own connections are cut, and it is replaced within 1 s.
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.ts';
import { type Gateway, startGateway } from '../../test/support/gateway.ts';
import { contradictions, type Reported } from '../../test/support/histories/history.ts';
import { clientPortsOf } from '../../test/support/kernel-sockets.ts';
import { readMetric } from '../../test/support/scrape.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';
import { Client } from './client.ts';
import { judgeEnding, requestPromises } from './judgement.ts';
import { insert, point } from './questions.ts';
import { Scrapes } from './watch.ts';
import { countWritten, openDatabase, stopAndLook } from './world.ts';

const promises = {
  ...requestPromises,
  own: 'only connections of the killed worker are cut',
  reported: 'the table agrees with what the reply to each write said',
  respawn: 'a killed worker is replaced within 1 s',
  service: 'there is a good answer in every second',
  counters: 'counters never go backwards',
  left: 'nothing is left after the stop',
} as const;

/** After a kill the clients that keep their connections are all with the other worker, which is the next. */
const keepers = 24;
const closers = 8;
const restMs = 3;
const boundMs = 1_000;

/** Runs for this many seconds. Resolves to the verdicts. */
export async function runKills(seconds: number, say: (line: string) => void): Promise<Verdict[]> {
  const database = await openDatabase();
  const gateway = await startGateway({
    database,
    settings: { workers: 2, pool: 4 },
    detached: true,
  });
  const findings = new Findings(Object.values(promises));
  const history = new Map<number, Reported>();
  const struck = new Set<number>();
  const endsAt = performance.now() + seconds * 1_000;
  let lastId = 0;
  let lastGoodAt = performance.now();
  let longestGapMs = 0;

  const lane = async (keepsAlive: boolean) => {
    const client = new Client(gateway.port, keepsAlive);
    while (performance.now() < endsAt) {
      lastId += 1;
      const id = lastId;
      const question = id % 2 === 0 ? insert(id) : point(id);
      const ending = await client.ask(question.request);
      const worker = struck.has(client.localPort);
      if (ending.kind === 'cut' && !worker) findings.breach(promises.own, ending.detail);
      const { outcome, reported, breach } = judgeEnding(question, ending, {
        worker,
        database: false,
      });
      findings.count(outcome);
      if (breach !== null) findings.breach(breach.promise, breach.example);
      if (question.writes === 'row') history.set(id, reported);
      if (ending.kind === 'reply') {
        longestGapMs = Math.max(longestGapMs, performance.now() - lastGoodAt);
        lastGoodAt = performance.now();
      }
      await pause(restMs);
    }
    client.close();
  };

  const scrapes = new Scrapes();
  const replacedMs: number[] = [];
  const killer = async () => {
    while (performance.now() < endsAt) {
      const fromMs = performance.now();
      const victim = killOldest(gateway, struck);
      const replaced = () => gateway.workers().filter((pid) => pid !== victim).length === 2;
      await eventually('a worker is replaced', replaced);
      replacedMs.push(performance.now() - fromMs);
      if (performance.now() - fromMs > boundMs) {
        findings.breach(promises.respawn, `${Math.round(performance.now() - fromMs)} ms`);
      }
      for (const counter of await scrapes.scrape(gateway))
        findings.breach(promises.counters, counter);
      // On a busy machine a start may take longer than a second. If both workers were dead, none would serve.
      const both = async () => (await readMetric(gateway, 'dbhttpd_worker_up')) === 2;
      await eventually('both listen', both, { everyMs: 50 });
      await pause(Math.max(0, fromMs + 1_000 - performance.now()));
    }
  };

  const lanes = [
    ...Array.from({ length: keepers }, () => lane(true)),
    ...Array.from({ length: closers }, () => lane(false)),
  ];
  await Promise.all([killer(), ...lanes]);
  if (longestGapMs > boundMs) findings.breach(promises.service, `${Math.round(longestGapMs)} ms`);
  for (const what of await stopAndLook(gateway, database)) findings.breach(promises.left, what);
  for (const what of contradictions(history, await countWritten(database))) {
    findings.breach(promises.reported, what);
  }
  await gateway.stop();
  await database.stop();
  const slowest = Math.round(Math.max(...replacedMs));
  say(
    `${replacedMs.length} kills, replaced after ${slowest} ms at most, longest gap ${Math.round(longestGapMs)} ms`,
  );
  say(`in all: ${findings.counts()}`);
  return findings.verdicts();
}

/** Kills the oldest worker, and records the clients that it served in its last moment. */
function killOldest(gateway: Gateway, struck: Set<number>): number {
  const [victim] = gateway.workers();
  if (victim === undefined) throw new Error('there is no worker to kill');
  // A stopped process accepts no connection, so its present connections are certain.
  process.kill(victim, 'SIGSTOP');
  const giveUpAt = performance.now() + boundMs;
  while (!/\) [Tt] /.test(readFileSync(`/proc/${victim}/stat`, 'latin1'))) {
    if (performance.now() > giveUpAt) throw new Error('the worker does not stop');
  }
  for (const port of clientPortsOf(victim, gateway.port)) struck.add(port);
  process.kill(victim, 'SIGKILL');
  return victim;
}
