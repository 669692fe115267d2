// A worker's knowledge about one candidate: its latest views, its verdict, how far it is behind.
import { createHash } from 'node:crypto';
import { type ConnectFailure, publicReason } from '../../shared/mysql/connect-failure.ts';
import type { ServerIdentity } from '../../shared/mysql/identity.ts';
import type { Role, Verdict } from '../../shared/servers/judge.ts';
import type { CandidateState } from '../../shared/servers/scene.ts';
import type { ServerView } from '../../shared/servers/server-view.ts';
import type { ServerState } from './consistency/consistency.ts';

/** A server that was gone counts again after this many successful probes. */
const probesToReturn = 3;
/** No two servers are probed at the same moment: some views before the latest are kept to compare. */
const maxViews = 5;
/** Kept views are at least this far apart, in ms: if probes are hurried, they still go back as far as another server's latest view. */
const minGapMs = 400;
const notProbed = 'not asked yet';

/** A worker's report about a candidate. */
export type ServerStatus = {
  readonly role: Role;
  /** Why, for people: no text of the server's, no accounts. */
  readonly reason: string;
  /** Changes of its role so far. */
  readonly changes: number;
  /** How far it is behind; null: it is no replica, or that is not known. */
  readonly lagMs: number | null;
};

/** One candidate of `host`, with what its probes have shown so far. */
export class TrackedCandidate {
  /** As written in `host`. */
  readonly address: string;
  /** Null: not all candidates have been probed yet. */
  verdict: Verdict | null = null;
  /** Its state, to compare it with what clients have seen; null: it was never reached. */
  state: ServerState | null = null;
  /** Probes so far, failed ones included. */
  probes = 0;
  /** How often its role has changed. */
  changes = 0;
  /** How far it is behind the primary, in ms, at its latest view; null: it is no replica, or that is not known. */
  lagMs: number | null = null;
  #provenBy: ServerIdentity | null = null;
  /** The latest first. */
  #views: readonly ServerView[] = [];
  #failure: ConnectFailure | null = null;
  /** Successful probes since it was gone. */
  #returned = probesToReturn;

  constructor(address: string) {
    this.address = address;
  }

  /** The latest view; null: it was never reached. It may be gone since. */
  get view(): ServerView | null {
    return this.#views[0] ?? null;
  }

  get seen(): CandidateState {
    const [view, ...earlier] = this.#views;
    const number = view?.number ?? null;
    if (this.#failure !== null) return { view: null, reason: this.#failure.reason, number };
    if (view === undefined) return { view: null, reason: notProbed, number };
    const isBack = this.#returned >= probesToReturn;
    const notYet = isBack ? null : `it was gone, and counts after ${probesToReturn} probes`;
    return { view, earlier, address: this.address, provenBy: this.#provenBy, notYet };
  }

  get status(): ServerStatus {
    const { verdict, lagMs, changes } = this;
    const failure = this.#failure === null ? null : publicReason(this.#failure);
    const reason = failure ?? verdict?.reason ?? notProbed;
    return { role: verdict?.role ?? 'unusable', reason, lagMs, changes };
  }

  /** Why the latest probe failed; null: it did not, or there was none. */
  get failure(): ConnectFailure | null {
    return this.#failure;
  }

  noteView(view: ServerView): void {
    const before = this.view;
    const isOther = before !== null && before.identity.name !== view.identity.name;
    if (isOther) this.#provenBy = null;
    this.#views = [view, ...(isOther ? [] : thinOut(this.#views))].slice(0, maxViews);
    // A server that was never reached has not been gone.
    if (this.#failure !== null && before !== null) this.#returned = 0;
    this.#failure = null;
    this.#returned += 1;
    this.probes += 1;
  }

  noteFailure(failure: ConnectFailure): void {
    this.#failure = failure;
    this.probes += 1;
  }

  /** @param primary the server that takes writes now; null: none does */
  noteVerdict(verdict: Verdict, primary: ServerIdentity | null): void {
    this.verdict = verdict;
    if (verdict.role !== 'replica') this.#provenBy = null;
    else if (primary !== null) this.#provenBy = primary;
  }

  /** Must be called after each probe. */
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
}

/** Clients get this name in their tokens, and need not know hosts. All gateways compute the same name. */
function hide(name: string): string {
  return createHash('sha256').update(name).digest('base64url').slice(0, 12);
}

/** Drops the latest view if it came too soon after the one before. */
function thinOut(views: readonly ServerView[]): readonly ServerView[] {
  const [latest, before] = views;
  const isSoon =
    latest !== undefined && before !== undefined && latest.askedAt - before.askedAt < minGapMs;
  return isSoon ? views.slice(1) : views;
}
