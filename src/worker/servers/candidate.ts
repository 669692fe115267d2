// What is known of one candidate: its last looks, whether it counts, how far it is behind.
// Must not know the other candidates.
import { createHash } from 'node:crypto';
import { type ConnectFailure, tellConnectFailure } from '../../shared/mysql/connect-failure.ts';
import type { ServerIdentity } from '../../shared/mysql/identity.ts';
import type { Verdict } from '../../shared/servers/judge.ts';
import type { CandidateState } from '../../shared/servers/scene.ts';
import type { ServerView } from '../../shared/servers/server-view.ts';
import type { ServerState } from './consistency/consistency.ts';

/** A server that had been gone counts again after so many looks. */
const looksToReturn = 3;
/** Of two servers no two looks are at one moment: a few before the latest are kept to compare. */
const keptLooks = 5;
/** They have so much between them at least, in ms: where looks are hurried, they still go back as far as another's latest. */
const leastGapMs = 400;
const notAsked = 'not asked yet';

/** One candidate. */
export class Candidate {
  /** As it stands in `host`. */
  readonly address: string;
  /** Null: there is none yet. */
  verdict: Verdict | null = null;
  /** What it is, for those who hold it against what clients have seen; null: it was never seen. */
  state: ServerState | null = null;
  /** How often its role has changed. */
  changes = 0;
  /** How far it is behind the primary, in ms, at its latest look; null: it is no replica, or that cannot be told. */
  lagMs: number | null = null;
  #provenBy: ServerIdentity | null = null;
  /** The latest first. */
  #looks: readonly ServerView[] = [];
  #failure: ConnectFailure | null = null;
  /** Looks since it had been gone. */
  #returned = looksToReturn;

  constructor(address: string) {
    this.address = address;
  }

  /** Whether it has been looked at, well or not. */
  get isAsked(): boolean {
    return this.#looks.length > 0 || this.#failure !== null;
  }

  /** The latest look; null: it was never seen. It may be gone since. */
  get view(): ServerView | null {
    return this.#looks[0] ?? null;
  }

  get seen(): CandidateState {
    const [view, ...earlier] = this.#looks;
    const number = view?.number ?? null;
    if (this.#failure !== null) return { view: null, reason: this.#failure.reason, number };
    if (view === undefined) return { view: null, reason: notAsked, number };
    const isBack = this.#returned >= looksToReturn;
    const notYet = isBack ? null : `it had been gone, and counts after ${looksToReturn} looks`;
    return { view, earlier, address: this.address, provenBy: this.#provenBy, notYet };
  }

  /** Why it is what it is, as whoever asks over HTTP may know. */
  get toldReason(): string {
    if (this.#failure !== null) return tellConnectFailure(this.#failure);
    return this.verdict?.reason ?? notAsked;
  }

  noteLook(view: ServerView): void {
    const before = this.view;
    const isOther = before !== null && before.identity.name !== view.identity.name;
    if (isOther) this.#provenBy = null;
    this.#looks = [view, ...(isOther ? [] : thinOut(this.#looks))].slice(0, keptLooks);
    // What was never seen has not been gone.
    if (this.#failure !== null && before !== null) this.#returned = 0;
    this.#failure = null;
    this.#returned += 1;
  }

  /** To be told of each verdict. @param primary who takes writes now; null: nobody does */
  noteVerdict(verdict: Verdict, primary: ServerIdentity | null): void {
    this.verdict = verdict;
    if (verdict.role !== 'replica') this.#provenBy = null;
    else if (primary !== null) this.#provenBy = primary;
  }

  /** To be told after each look. */
  noteRole(isPrimary: boolean): void {
    const { view } = this;
    if (view === null) return;
    const { name, startedAt } = view.identity;
    const run = `${name} ${startedAt}`;
    const { position, galera } = view;
    if (this.state?.run === run && this.state.isPrimary === isPrimary) {
      this.state = { ...this.state, position };
      return;
    }
    this.state = { name: hide(name), run, isPrimary, isNode: galera !== null, position };
  }

  noteFailure(failure: ConnectFailure): void {
    this.#failure = failure;
  }
}

/** Clients get it in their tokens, and have no need to know hosts. The same by all gateways. */
function hide(name: string): string {
  return createHash('sha256').update(name).digest('base64url').slice(0, 12);
}

/** Without the latest, where it came too soon behind the one before. */
function thinOut(looks: readonly ServerView[]): readonly ServerView[] {
  const [latest, before] = looks;
  const isSoon =
    latest !== undefined && before !== undefined && latest.askedAt - before.askedAt < leastGapMs;
  return isSoon ? looks.slice(1) : looks;
}
