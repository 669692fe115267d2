// Probes the servers of one section, and judges them together: which one takes writes, and which ones may be read from.
import type { Connection } from '../../shared/mysql/connection.ts';
import { isSameServer, type ServerIdentity } from '../../shared/mysql/identity.ts';
import type { Log } from '../../shared/process/log.ts';
import { isRemembering } from '../../shared/servers/choice.ts';
import { type Judgement, judge, type NoPrimary, type Verdict } from '../../shared/servers/judge.ts';
import { identityOf, type PrimaryMemory } from '../../shared/servers/primary-memory.ts';
import type { ServerView } from '../../shared/servers/server-view.ts';
import type { ServerState } from './consistency/consistency.ts';
import { LagTracker } from './lag.ts';
import { Prober } from './prober.ts';
import { type ProposePrimary, SharedMemory } from './shared-memory.ts';
import { type ServerStatus, TrackedCandidate } from './tracked-candidate.ts';

/** One server of `host`. */
export type CandidateSettings = {
  /** Its name in logs and metrics. */
  readonly address: string;
  /** Opens a connection for the probe. */
  readonly connect: (signal: AbortSignal) => Promise<Connection>;
  /** Called when it answers a probe after one that failed. */
  readonly onReturn: () => void;
};

export type TopologySettings = {
  /** In the order of `host`. */
  readonly candidates: readonly CandidateSettings[];
  readonly section: string;
  /** A replica that is further behind is not read from. */
  readonly maxLagMs: number;
  /** The instance's memory of the primary; null: none. */
  readonly memory: PrimaryMemory | null;
  /** Has the instance remember another primary, before it is written to. */
  readonly proposePrimary: ProposePrimary;
  /** Called after each probe, and when another primary is remembered: roles may have changed. */
  readonly onJudged: () => void;
  readonly log: Log;
};

const usualMs = 1_000;
/** While no server takes writes. */
const urgentMs = 200;
/** How old a probe's connection may become while no server takes writes, and if the server cannot be used. */
const urgentAgeMs = 1_000;
const unusableAgeMs = 10_000;

/** The topology of one section, as one worker sees it. Its owner starts and closes it. */
export class Topology {
  /** The place of the server that takes writes, in the order of `host`; null: none does. */
  primary: number | null = null;
  /** Several servers could take writes, and it is not known which one should. */
  isContested = false;
  /** Whether the candidates have roles yet. */
  isDecided = false;
  /** Why no server takes writes; null: one does, or not all candidates have been probed. */
  none: NoPrimary | null = null;
  readonly #settings: TopologySettings;
  readonly #candidates: readonly TrackedCandidate[];
  readonly #probers: readonly Prober[];
  readonly #lag = new LagTracker();
  /** The latest view of the primary, or of the last one. */
  #reference: ServerView | null = null;
  readonly #memory: SharedMemory;
  #warning: string | null = null;

  constructor(settings: TopologySettings) {
    this.#settings = settings;
    this.#candidates = settings.candidates.map(({ address }) => new TrackedCandidate(address));
    const { memory, proposePrimary } = settings;
    this.#memory = new SharedMemory(memory, proposePrimary, () => this.#memoryChanged());
    this.#probers = settings.candidates.map((candidate, at) => this.#createProber(candidate, at));
  }

  start(): void {
    for (const prober of this.#probers) prober.start();
  }

  remember(memory: PrimaryMemory): void {
    this.#memory.adopt(memory);
  }

  close(): void {
    this.#memory.close();
    for (const prober of this.#probers) prober.close();
  }

  /** How often a server has been probed, failures included. */
  probesOf(at: number): number {
    return (this.#candidates[at] as TrackedCandidate).probes;
  }

  /** In the order of `host`. */
  get statuses(): readonly ServerStatus[] {
    return this.#candidates.map(({ status }) => status);
  }

  /** MySQL's number, if each of the servers refuses the gateway's login; null: one does not. */
  get refusal(): number | null {
    const failures = this.#candidates.map(({ failure }) => failure);
    const areAllRefused = failures.every((failure) => failure?.kind === 'login refused');
    return areAllRefused ? (failures[0]?.errno ?? null) : null;
  }

  statusOf(at: number): ServerStatus {
    return (this.#candidates[at] as TrackedCandidate).status;
  }

  /** Whether the server is a replica that may be read from. */
  isReadable(at: number): boolean {
    const { role, lagMs } = this.statusOf(at);
    return role === 'replica' && lagMs !== null && lagMs <= this.#settings.maxLagMs;
  }

  /** The state of the server by its latest view; null: it was never reached. */
  stateOf(at: number): ServerState | null {
    return (this.#candidates[at] as TrackedCandidate).state;
  }

  /** Whether it is a node of a Galera cluster, and answered the latest probe. */
  isLivingNode(at: number): boolean {
    const { state, seen } = this.#candidates[at] as TrackedCandidate;
    return state?.isNode === true && seen.view !== null && seen.notYet === null;
  }

  /** Whether another server has taken writes since, as far as this worker or any other knows. */
  hasSuccessor(at: number): boolean {
    if (this.primary !== null) return this.primary !== at;
    const { inForce } = this.#memory;
    const { address, view } = this.#candidates[at] as TrackedCandidate;
    if (inForce === null || view === null || !isRemembering(view)) return false;
    return inForce.primary.identity !== identityOf(address, view);
  }

  /** Something does not fit the latest view of a server: it is probed now. */
  suspect(at: number): void {
    this.#probers[at]?.hurry();
  }

  /** Whether all candidates have been probed. */
  get isComplete(): boolean {
    return this.#candidates.every(({ probes }) => probes > 0);
  }

  /** Whether this is the server of the latest view, or there is no view yet. */
  isKnown(at: number, identity: ServerIdentity): boolean {
    const view = this.#candidates[at]?.view ?? null;
    return view === null || isSameServer(view.identity, identity);
  }

  /** The same. If it is another server, the probe connects again, so that its name is resolved again. */
  confirms(at: number, identity: ServerIdentity): boolean {
    const isSame = this.isKnown(at, identity);
    if (!isSame) this.#probers[at]?.hurry(true);
    return isSame;
  }

  #createProber({ connect, onReturn }: CandidateSettings, at: number): Prober {
    const candidate = this.#candidates[at] as TrackedCandidate;
    return new Prober(connect, {
      seen: (view) => {
        const wasGone = candidate.failure !== null;
        candidate.noteView(view);
        if (wasGone) onReturn();
        this.#decide();
      },
      unseen: (failure) => {
        candidate.noteFailure(failure);
        this.#decide();
      },
      intervalMs: () => (this.primary === null ? urgentMs : usualMs),
      maxAgeMs: () => {
        if (this.primary === null) return urgentAgeMs;
        return this.statusOf(at).role === 'unusable' ? unusableAgeMs : Number.POSITIVE_INFINITY;
      },
    });
  }

  #memoryChanged(): void {
    const { inForce } = this.#memory;
    const address = inForce?.primary.address ?? '';
    const inUse = this.#reference === null ? null : identityOf(address, this.#reference);
    // The position of another server is no measure for this one's replicas.
    if (inUse !== inForce?.primary.identity) this.#reference = null;
    this.#decide();
  }

  #decide(): void {
    // A candidate that was not probed yet might be the better primary.
    if (this.isComplete) {
      const seen = this.#candidates.map((candidate) => candidate.seen);
      const { inForce } = this.#memory;
      this.#refreshReference();
      const known = { reference: this.#reference, isInUse: this.primary !== null, memory: inForce };
      const judged = judge(seen, known);
      const { memory } = judged;
      if (memory !== null) this.#memory.propose(memory, judged.primary === null);
      if (judged.primary !== null && this.#memory.awaitsPrimary) this.#await(judged);
      else this.#follow(judged);
    }
    this.#settings.onJudged();
  }

  /** A later view of the primary shows how far it came, even if it is read-only by then. */
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
    this.#logWarning(judged.warning, judged.isContested);
    this.#setNone(judged.none);
  }

  /** Nothing is written to a new primary before all workers remember it. Until then it keeps its role, and the others get theirs. */
  #await({ primary, verdicts }: Judgement): void {
    this.#setPrimary(null);
    this.isContested = false;
    for (const [at, verdict] of verdicts.entries()) {
      if (at !== primary && this.isDecided) this.#setVerdict(at, verdict);
    }
    const evidence =
      'another server was found to be the primary, and not all workers remember it yet';
    this.#setNone({ reason: 'not_accepted', evidence });
  }

  #setNone(none: NoPrimary | null): void {
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
    // If the same server takes writes again, its positions remain comparable.
    if (view.identity.name !== this.#reference?.identity.name) this.#lag.clear();
    this.#reference = view;
    if (view.position !== null) this.#lag.note(view.askedAt, view.position);
  }

  #setVerdict(at: number, verdict: Verdict): void {
    const candidate = this.#candidates[at] as TrackedCandidate;
    const { address } = this.#settings.candidates[at] as CandidateSettings;
    const wasReadable = this.isReadable(at);
    const before = candidate.verdict?.role ?? 'unknown';
    candidate.noteVerdict(verdict, this.primary === null ? null : this.#identityOf(this.primary));
    candidate.lagMs = verdict.role === 'replica' ? this.#lagOf(candidate) : null;
    const place = { section: this.#settings.section, backend: address };
    if (before !== verdict.role) {
      candidate.changes += 1;
      const { log } = this.#settings;
      const write = verdict.role === 'unusable' ? log.warn : log.info;
      write('a server changed its role', {
        ...place,
        role: verdict.role,
        was: before,
        reason: verdict.reason,
      });
    } else if (verdict.role === 'replica' && wasReadable !== this.isReadable(at)) {
      this.#logLag(place, candidate.lagMs);
    }
  }

  #identityOf(at: number): ServerIdentity | null {
    return this.#candidates[at]?.view?.identity ?? null;
  }

  #logLag(place: Readonly<Record<string, string>>, lagMs: number | null): void {
    const { log, maxLagMs } = this.#settings;
    if (lagMs !== null && lagMs <= maxLagMs) log.info('a replica has caught up', place);
    else log.warn('a replica is left out of reads', { ...place, lag_ms: lagMs ?? 'unknown' });
  }

  #lagOf({ view }: TrackedCandidate): number | null {
    if (view === null || view.position === null) return null;
    const lag = this.#lag.lagOf(view.position, view.askedAt);
    return lag === null ? null : Math.round(lag);
  }

  #logWarning(warning: string | null, isContested: boolean): void {
    if (warning === this.#warning) return;
    this.#warning = warning;
    const { log, section } = this.#settings;
    if (warning === null) log.info('it is clear again which server takes writes', { section });
    else (isContested ? log.error : log.warn)(warning, { section });
  }
}
