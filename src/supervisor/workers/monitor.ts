// The monitor of an instance: keeps what its workers report, and answers what they ask about it.
import type { RequestOwner } from '../../shared/clients/caller.ts';
import type { UsedCertificate } from '../../shared/config/certificates.ts';
import type { Sections } from '../../shared/config/config.ts';
import type { NamedBySection } from '../../shared/named/load-sections.ts';
import type { CountedStatements } from '../../shared/observe/statement-sums.ts';
import type { FileFault, RequestList, ServerVerdict, Stats } from '../../shared/observe/stats.ts';
import type { Answerers } from '../../shared/process/calls.ts';
import type {
  KillWish,
  SupervisorCalls,
  WorkerCalls,
  WorkerReport,
} from '../../shared/process/messages.ts';
import { ClientHistory, clientIntervalMs } from '../observe/client-history.ts';
import type { ExpiringClient } from '../observe/expiry-watch.ts';
import { joinRequests, parseRequestName } from '../observe/live-requests.ts';
import { StatementTotals, statementIntervalMs } from '../observe/statement-totals.ts';
import {
  countNamed,
  describeInstance,
  History,
  historyIntervalMs,
  RecentErrors,
  readFigures,
} from '../observe/stats.ts';
import { createTotals, measureOwnFigures, type Totals } from '../observe/totals.ts';
import type { PrimaryMemories } from '../primary/primary-memories.ts';
import type { CommitMemory } from './commit-memory.ts';
import type { Slot } from './slot.ts';

/** The state of the supervisor's own parts at the moment of a scrape. */
export type OwnState = {
  readonly logLinesLost: () => number;
  readonly certificates: () => readonly UsedCertificate[];
  readonly expiringClients: () => readonly ExpiringClient[];
  /** The keys that name files of credentials. */
  readonly renewedKeys: () => readonly string[];
  /** The faults that these files had when they were last read. */
  readonly fileFaults: () => readonly FileFault[];
  /** The named statements in force. */
  readonly named: () => NamedBySection;
  /** Reads the keys of JSON Web Tokens again, unless that was just done. Returns whether it did. */
  readonly rereadKeys: () => boolean;
};

/** One instance's knowledge of itself. Its owner must close it. */
export class Monitor {
  /** The answers to what workers ask. Simultaneous questions share one answer. */
  readonly answerers: Answerers<SupervisorCalls>;
  readonly #sections: Sections;
  readonly #slots: () => readonly Slot[];
  readonly #totals: Totals;
  readonly #verdicts = new Map<number, readonly ServerVerdict[]>();
  readonly #history = new History();
  readonly #clients = new ClientHistory();
  readonly #errors = new RecentErrors();
  readonly #statements = new StatementTotals(Date.now());
  readonly #ownFigures = measureOwnFigures();
  readonly #primaries: PrimaryMemories;
  readonly #own: OwnState;
  readonly #timers: readonly NodeJS.Timeout[];

  /** @param sections the first one names the instance */
  constructor(
    sections: Sections,
    slots: () => readonly Slot[],
    commits: CommitMemory,
    primaries: PrimaryMemories,
    own: OwnState,
  ) {
    this.#sections = sections;
    this.#slots = slots;
    this.#primaries = primaries;
    this.#own = own;
    this.#totals = createTotals(sections[0].section);
    this.#timers = [
      setInterval(() => this.#noteHistory(), historyIntervalMs),
      setInterval(() => this.#statements.beginPoint(Date.now()), statementIntervalMs),
      setInterval(() => this.#beginClientPoint(), clientIntervalMs),
    ];
    for (const timer of this.#timers) timer.unref();
    this.#beginClientPoint();
    const listAll = sharing(() => this.#listRequests(null));
    this.answerers = {
      metrics: sharing(() => this.#renderMetrics()),
      stats: sharing(() => this.#describe()),
      requests: (owner) => (owner === null ? listAll() : this.#listRequests(owner)),
      statements: sharing(() => this.#listStatements()),
      kill: (wish) => this.#kill(wish),
      noteCommit: ({ name, ending }) => {
        commits.note(name, ending);
        return true;
      },
      endingOfCommit: (name) => commits.of(name),
      proposePrimary: primaries.propose,
      rereadKeys: () => ({ isRead: own.rereadKeys() }),
    };
  }

  /** Takes the report of a living worker. */
  report(slot: number, report: WorkerReport): void {
    this.#totals.update(slot, report.snapshot);
    this.#errors.add(slot, report.errors);
    this.#verdicts.set(slot, report.verdicts);
    if (report.statements !== null) this.#statements.add(report.statements);
  }

  /** A worker is gone: its counts remain. */
  retire(slot: number): void {
    this.#totals.retire(slot);
    this.#verdicts.delete(slot);
  }

  /** The counts of the workers since the last scrape. */
  unseen(): Readonly<Record<string, number>> {
    return this.#totals.unseen();
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  #noteHistory(): void {
    this.#history.note(readFigures(this.#totals.reported()), Date.now());
  }

  #beginClientPoint(): void {
    this.#clients.beginPoint(this.#totals.reported(), Date.now());
  }

  async #renderMetrics(): Promise<string> {
    const answers = await askAll(this.#slots(), 'report', null);
    const silent = answers.filter(({ answer }) => answer === null).length;
    return this.#totals.render({
      slots: this.#slots().map((slot) => slot.describe()),
      silent,
      logLinesLost: this.#own.logLinesLost(),
      certificates: this.#own.certificates(),
      expiringClients: this.#own.expiringClients(),
      renewedKeys: this.#own.renewedKeys(),
      fileFaults: this.#own.fileFaults(),
      primariesUnsaved: this.#primaries.unsaved(),
      named: this.#own.named(),
      startedAt: performance.timeOrigin / 1000,
      own: this.#ownFigures(),
    });
  }

  async #describe(): Promise<Stats> {
    // Asked for the present: a worker finds out whether it is ready when it reports.
    await askAll(this.#slots(), 'report', null);
    return describeInstance({
      sections: this.#sections,
      slots: this.#slots().map((slot) => slot.describe()),
      reported: this.#totals.reported(),
      verdicts: [...this.#verdicts.values()].flat(),
      history: this.#history.points(),
      clients: this.#clients.list(this.#totals.reported(), Date.now()),
      errors: this.#errors.latest,
      fileFaults: this.#own.fileFaults(),
    });
  }

  async #listRequests(owner: RequestOwner | null): Promise<RequestList> {
    const answers = await askAll(this.#slots(), 'requests', owner);
    return joinRequests(
      answers.map(({ slot, pid, answer }) => ({ slot: slot.number, pid, live: answer })),
    );
  }

  async #listStatements(): Promise<CountedStatements> {
    // Includes the statements of the last second.
    await askAll(this.#slots(), 'report', null);
    return { ...this.#statements.list(), named: countNamed(this.#totals.reported()) };
  }

  async #kill({ id, owner, mayEndOthers }: KillWish): Promise<{ readonly isFound: boolean }> {
    const name = parseRequestName(id);
    const slot = this.#slots().find((one) => one.number === name?.slot && one.pid() === name.pid);
    if (name !== null && slot !== undefined) {
      const { id: number } = name;
      const wish = { by: 'number', number, owner: mayEndOthers ? null : owner } as const;
      const answer = await slot.ask('kill', wish);
      if (answer === null) throw silence();
      if (answer.isFound) return answer;
    }
    // Requests of one owner may have the same id.
    const wish = { by: 'request id', requestId: id, owner } as const;
    const answers = await askAll(this.#slots(), 'kill', wish);
    if (answers.some(({ answer }) => answer?.isFound === true)) return { isFound: true };
    // A worker that did not answer may have it.
    if (answers.some(({ answer }) => answer === null)) throw silence();
    return { isFound: false };
  }
}

const silence = () => new Error('the worker did not answer in time');

/** Simultaneous callers share one answer. */
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
  /** Null: none came in time. */
  readonly answer: WorkerCalls[Name]['answer'] | null;
};

/** Asks every worker that listens, and leaves out those that died meanwhile. */
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
