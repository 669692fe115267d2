// One execution of a read for all requests that asked for it before it began: run for the first, handed to all.
// Must not know HTTP, nor which reads are the same.
import type { RunEnd, StopReason } from './outcome.ts';
import { OutgrowingSink } from './outgrowing-sink.ts';
import type { RunOwner, RunSink, StatementRun } from './statement-run.ts';

/** A request that waits for the flight; at most one of the three is called, once. */
export interface Member {
  readonly owner: RunOwner;
  /** Its answer is the leader's; the owner's sink has it already. */
  answered(end: RunEnd): void;
  /** There is no answer for it here: nothing was sent to MySQL in its name. */
  letDown(): void;
  /** It has left as it wished. */
  withdrawn(reason: StopReason): void;
}

/** Who keeps the flights that may be joined, and the places of those who wait. */
export interface FlightKeeper {
  /** It has not begun yet: others may join. */
  opened(flight: Flight): void;
  /** From here on nobody may join. */
  closed(flight: Flight): void;
  /** So many do not wait behind a leader any more. */
  left(count: number): void;
}

/** Creates an execution for whoever it is handed. */
export type CreateRun = (owner: RunOwner) => StatementRun;

/** An execution with its leader, whose sink takes the results, and its followers. */
export class Flight implements RunOwner {
  readonly afterwards = null;
  readonly key: string;
  run: StatementRun;
  sink: RunSink;
  readonly #keeper: FlightKeeper;
  readonly #createRun: CreateRun;
  #leader: Member;
  readonly #followers = new Set<Member>();
  #hasBegun = false;

  constructor(key: string, leader: Member, keeper: FlightKeeper, createRun: CreateRun) {
    this.key = key;
    this.#leader = leader;
    this.sink = leader.owner.sink;
    this.#keeper = keeper;
    this.#createRun = createRun;
    this.run = createRun(this);
  }

  start(): void {
    this.#keeper.opened(this);
    this.run.start();
  }

  isLedBy(member: Member): boolean {
    return this.#leader === member;
  }

  /** Only while the flight is open, and with a place in the queue. */
  join(follower: Member): void {
    this.#followers.add(follower);
  }

  /** A member does not want to wait any more. Without a member the execution is not wanted either. */
  leave(member: Member, reason: StopReason): void {
    const isLeader = this.#leader === member;
    if (isLeader && (this.#hasBegun || this.#followers.size === 0)) {
      this.run.stop(reason);
      return;
    }
    // Before it begins the execution keeps its place in the queue, whoever leads.
    if (isLeader) this.#promote();
    else if (this.#followers.delete(member)) this.#keeper.left(1);
    else return;
    member.withdrawn(reason);
  }

  runBegins(): void {
    this.#hasBegun = true;
    this.#keeper.closed(this);
    if (this.#followers.size === 0) return;
    this.sink = new OutgrowingSink(this.#leader.owner.sink, () => this.#letDown());
  }

  runEnded(end: RunEnd): void {
    this.#keeper.closed(this);
    const leader = this.#leader.owner;
    if (this.#followers.size === 0) leader.runEnded(end);
    else if (end.kind === 'answered' && end.error === null) this.#share(end);
    else {
      leader.runEnded(end);
      if (isLeadersOwn(end)) this.#beginAnew();
      else if ('reason' in end && end.reason === 'stopping') this.#withdrawAll();
      else this.#letDown();
    }
  }

  /** Bytes first: they are the leader's, who is served before those who came later. */
  #share(end: RunEnd): void {
    const held = this.#leader.owner.sink.held();
    if (held === null) {
      this.#leader.owner.runEnded(end);
      this.#letDown();
      return;
    }
    const followers = this.#takeFollowers();
    for (const { owner } of followers) owner.sink.adopt(held);
    this.#leader.owner.runEnded(end);
    for (const follower of followers) follower.answered(end);
  }

  /** Also when the reply begins to leave: no copy of it is kept, waiting on would be for nothing. */
  #letDown(): void {
    for (const follower of this.#takeFollowers()) follower.letDown();
  }

  /** The gateway stops: nothing is begun for them any more. */
  #withdrawAll(): void {
    for (const follower of this.#takeFollowers()) follower.withdrawn('stopping');
  }

  #takeFollowers(): readonly Member[] {
    const followers = [...this.#followers];
    this.#followers.clear();
    this.#keeper.left(followers.length);
    return followers;
  }

  /** The first of the followers leads. */
  #promote(): void {
    const [next] = this.#followers;
    if (next === undefined) return;
    this.#followers.delete(next);
    this.#leader = next;
    this.sink = next.owner.sink;
    this.#keeper.left(1);
  }

  #beginAnew(): void {
    this.#promote();
    this.#hasBegun = false;
    this.run = this.#createRun(this);
    this.start();
  }
}

/** Whether the execution ended for a reason of the leader's, that says nothing about the next one. */
function isLeadersOwn(end: RunEnd): boolean {
  return (
    (end.kind === 'stopped' || end.kind === 'not executed' || end.kind === 'cut short') &&
    (end.reason === 'client gone' || end.reason === 'deadline')
  );
}
