// The servers of one section: looked at all the time, judged together; who takes writes, who may be read from.
// Must not know pools, nor requests.
import type { ConnectFailure } from '../../shared/mysql/connect-failure.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { isSameServer, type ServerIdentity } from '../../shared/mysql/identity.ts';
import type { Log } from '../../shared/process/log.ts';
import { isRemembering } from '../../shared/servers/choice.ts';
import {
  type Judgement,
  judge,
  type NoPrimary,
  type Role,
  type Verdict,
} from '../../shared/servers/judge.ts';
import { identityOf, type PrimaryMemory } from '../../shared/servers/primary-memory.ts';
import type { ServerView } from '../../shared/servers/server-view.ts';
import { Candidate } from './candidate.ts';
import type { ServerState } from './consistency/consistency.ts';
import { LagTracker } from './lag.ts';
import { Prober } from './prober.ts';
import { type ProposePrimary, SharedMemory } from './shared-memory.ts';

/** One of `host`. */
export type CandidateSettings = {
  /** Its name in logs and metrics. */
  readonly address: string;
  /** Opens a connection of the probe's own. */
  readonly connect: (signal: AbortSignal) => Promise<Connection>;
};

export type TopologySettings = {
  /** In the order of `host`. */
  readonly candidates: readonly CandidateSettings[];
  readonly section: string;
  /** A replica that is behind by more is not read from. */
  readonly maxLagMs: number;
  /** What is remembered of the primary; null: nothing. */
  readonly memory: PrimaryMemory | null;
  /** Has the instance remember another primary, before it is written to. */
  readonly proposePrimary: ProposePrimary;
  /** Called after each look, and when another primary is remembered: roles may have changed. */
  readonly onLook: () => void;
  readonly log: Log;
};

/** What is told of a candidate. */
export type Standing = {
  readonly role: Role;
  /** Why, for people: no words of the server's, no accounts. */
  readonly reason: string;
  /** Changes of its role so far. */
  readonly changes: number;
  /** How far it is behind; null: that does not apply, or cannot be told. */
  readonly lagMs: number | null;
};

const usualMs = 1_000;
/** While nobody takes writes. */
const urgentMs = 200;
/** So old a probe's connection may be: while nobody takes writes, and of a server that cannot be used. */
const doubtfulMs = 1_000;
const uselessMs = 10_000;

/** The topology of one section, as one worker sees it. Whoever creates it starts and closes it. */
export class Topology {
  /** The place of whoever takes writes in the order of `host`; null: nobody does. */
  primary: number | null = null;
  /** Several could take writes, and it cannot be told which should. */
  isContested = false;
  /** Whether it has been decided what each candidate is used for. */
  isDecided = false;
  /** Why writes go nowhere; null: they go somewhere, or not all candidates have been looked at. */
  none: NoPrimary | null = null;
  readonly #settings: TopologySettings;
  readonly #candidates: readonly Candidate[];
  readonly #looks: number[];
  readonly #probers: readonly Prober[];
  readonly #lag = new LagTracker();
  /** The latest look at whoever takes writes, or did last. */
  #reference: ServerView | null = null;
  readonly #memory: SharedMemory;
  #warning: string | null = null;

  constructor(settings: TopologySettings) {
    this.#settings = settings;
    this.#candidates = settings.candidates.map(({ address }) => new Candidate(address));
    this.#looks = settings.candidates.map(() => 0);
    const { memory, proposePrimary } = settings;
    this.#memory = new SharedMemory(memory, proposePrimary, () => this.#memoryChanged());
    this.#probers = settings.candidates.map(({ connect }, at) => this.#createProber(connect, at));
  }

  start(): void {
    for (const prober of this.#probers) prober.start();
  }

  /** All workers remember this from now on. */
  remember(memory: PrimaryMemory): void {
    this.#memory.adopt(memory);
  }

  close(): void {
    this.#memory.close();
    for (const prober of this.#probers) prober.close();
  }

  /** How often it has been looked at, well or not. */
  looksAt(at: number): number {
    return this.#looks[at] as number;
  }

  standingOf(at: number): Standing {
    const { verdict, toldReason, lagMs, changes } = this.#candidates[at] as Candidate;
    return { role: verdict?.role ?? 'unusable', reason: toldReason, lagMs, changes };
  }

  /** Whether reads may go there beside the primary. */
  isReadable(at: number): boolean {
    const { role, lagMs } = this.standingOf(at);
    return role === 'replica' && lagMs !== null && lagMs <= this.#settings.maxLagMs;
  }

  /** What it is now, as its latest look says; null: it was never seen. */
  stateOf(at: number): ServerState | null {
    return (this.#candidates[at] as Candidate).state;
  }

  /** Whether it is a node of a Galera cluster, and answered when it was looked at last. */
  isLivingNode(at: number): boolean {
    const { state, seen } = this.#candidates[at] as Candidate;
    return state?.isNode === true && seen.view !== null && seen.notYet === null;
  }

  /** Whether another server has taken writes since, as far as this worker sees it or any has. */
  hasSuccessor(at: number): boolean {
    if (this.primary !== null) return this.primary !== at;
    const { inForce } = this.#memory;
    const { address, view } = this.#candidates[at] as Candidate;
    if (inForce === null || view === null || !isRemembering(view)) return false;
    return inForce.primary.identity !== identityOf(address, view);
  }

  /** Somebody has seen something that does not fit: it is looked at now. */
  suspect(at: number): void {
    this.#probers[at]?.hurry();
  }

  /** Whether all of them have been looked at. */
  get isComplete(): boolean {
    return this.#candidates.every(({ isAsked }) => isAsked);
  }

  /** Whether this is the server that was looked at last, or none was. */
  isKnown(at: number, identity: ServerIdentity): boolean {
    const view = this.#candidates[at]?.view ?? null;
    return view === null || isSameServer(view.identity, identity);
  }

  /** The same; else it is looked at anew, whatever stands behind its name now. */
  confirms(at: number, identity: ServerIdentity): boolean {
    const isSame = this.isKnown(at, identity);
    if (!isSame) this.#probers[at]?.hurry(true);
    return isSame;
  }

  #createProber(connect: CandidateSettings['connect'], at: number): Prober {
    const seen = (view: ServerView) => {
      this.#candidates[at]?.noteLook(view);
      this.#judge(at);
    };
    const unseen = (failure: ConnectFailure) => {
      this.#candidates[at]?.noteFailure(failure);
      this.#judge(at);
    };
    const interval = () => (this.primary === null ? urgentMs : usualMs);
    const mostAge = () => {
      if (this.primary === null) return doubtfulMs;
      return this.standingOf(at).role === 'unusable' ? uselessMs : Number.POSITIVE_INFINITY;
    };
    return new Prober(connect, {
      seen,
      unseen,
      get intervalMs() {
        return interval();
      },
      get mostAgeMs() {
        return mostAge();
      },
    });
  }

  #judge(looked: number): void {
    this.#looks[looked] = this.looksAt(looked) + 1;
    this.#decide();
  }

  #memoryChanged(): void {
    const { inForce } = this.#memory;
    const address = inForce?.primary.address ?? '';
    const inUse = this.#reference === null ? null : identityOf(address, this.#reference);
    // What another one had is no measure for its replicas.
    if (inUse !== inForce?.primary.identity) this.#reference = null;
    this.#decide();
  }

  #decide(): void {
    // Of those that are not known yet one might be the better one.
    if (this.isComplete) {
      const seen = this.#candidates.map((candidate) => candidate.seen);
      const { inForce } = this.#memory;
      this.#refreshReference();
      const judged = judge(seen, this.#reference, inForce);
      const { memory } = judged;
      if (memory !== null) this.#memory.propose(memory, judged.primary === null);
      if (judged.primary !== null && this.#memory.awaitsPrimary) this.#await(judged);
      else this.#follow(judged);
    }
    this.#settings.onLook();
  }

  /** How far it had come is known the better the later it was looked at, be it read-only by then. */
  #refreshReference(): void {
    const { name } = this.#reference?.identity ?? { name: null };
    const latest = this.#candidates.find(({ view }) => view?.identity.name === name);
    this.#reference = latest?.view ?? this.#reference;
  }

  #follow(judged: Judgement): void {
    this.isDecided = true;
    this.#setPrimary(judged.primary);
    this.isContested = judged.isContested;
    for (const [at, verdict] of judged.verdicts.entries()) this.#setVerdict(at, verdict);
    this.#tellWarning(judged.warning, judged.isContested);
    this.#tellNone(judged.none);
  }

  /** Nothing is written to a new primary before it is remembered: until then it stays what it was, and the others are judged already. */
  #await({ primary, verdicts }: Judgement): void {
    this.#setPrimary(null);
    this.isContested = false;
    for (const [at, verdict] of verdicts.entries()) {
      if (at !== primary && this.isDecided) this.#setVerdict(at, verdict);
    }
    const evidence =
      'another server was found to be the primary, and not all workers remember it yet';
    this.#tellNone({ reason: 'not_accepted', evidence });
  }

  #tellNone(none: NoPrimary | null): void {
    const before = this.none;
    this.none = none;
    if (none === null || none.reason === 'not_accepted') return;
    if (before?.reason === none.reason && before.evidence === none.evidence) return;
    const { log, section } = this.#settings;
    log.warn('no server takes writes', { section, reason: none.reason, evidence: none.evidence });
  }

  #setPrimary(at: number | null): void {
    this.primary = at;
    for (const [place, candidate] of this.#candidates.entries()) candidate.noteRole(place === at);
    const view = at === null ? null : (this.#candidates[at]?.view ?? null);
    if (view === null) return;
    // The same server, after a while without any, goes on with its history.
    if (view.identity.name !== this.#reference?.identity.name) this.#lag.clear();
    this.#reference = view;
    if (view.position !== null) this.#lag.note(view.askedAt, view.position);
  }

  #setVerdict(at: number, verdict: Verdict): void {
    const candidate = this.#candidates[at] as Candidate;
    const { address } = this.#settings.candidates[at] as CandidateSettings;
    const wasReadable = this.isReadable(at);
    const before = candidate.verdict?.role ?? 'unknown';
    candidate.noteVerdict(verdict, this.primary === null ? null : this.#identityOf(this.primary));
    candidate.lagMs = verdict.role === 'replica' ? this.#lagOf(candidate) : null;
    const place = { section: this.#settings.section, backend: address };
    if (before !== verdict.role) {
      candidate.changes += 1;
      const { log } = this.#settings;
      const tell = verdict.role === 'unusable' ? log.warn : log.info;
      tell('a server changed its role', {
        ...place,
        role: verdict.role,
        was: before,
        reason: verdict.reason,
      });
    } else if (verdict.role === 'replica' && wasReadable !== this.isReadable(at)) {
      this.#tellLag(place, candidate.lagMs);
    }
  }

  #identityOf(at: number): ServerIdentity | null {
    return this.#candidates[at]?.view?.identity ?? null;
  }

  #tellLag(place: Readonly<Record<string, string>>, lagMs: number | null): void {
    const { log, maxLagMs } = this.#settings;
    if (lagMs !== null && lagMs <= maxLagMs) log.info('a replica has caught up', place);
    else log.warn('a replica is left out of reads', { ...place, lag_ms: lagMs ?? 'unknown' });
  }

  #lagOf({ view }: Candidate): number | null {
    if (view === null || view.position === null) return null;
    const lag = this.#lag.lagOf(view.position, view.askedAt);
    return lag === null ? null : Math.round(lag);
  }

  #tellWarning(warning: string | null, isContested: boolean): void {
    if (warning === this.#warning) return;
    this.#warning = warning;
    const { log, section } = this.#settings;
    if (warning === null) log.info('it is clear again which server takes writes', { section });
    else (isContested ? log.error : log.warn)(warning, { section });
  }
}
