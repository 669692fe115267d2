// One execution of a read for all requests that asked for it before it began: run for the first, handed to all.
// Must not know HTTP, nor which reads are the same.
import type { RunEnd, StopReason } from './outcome.ts';
import { OutgrowingSink } from './outgrowing-sink.ts';
import type { RunEvents, RunSink, StatementRun } from './statement-run.ts';

/** A request that waits for a coalesced run; at most one of the three is called, once. */
export interface Participant {
  readonly events: RunEvents;
  /** Its answer is the leader's; its events' sink has it already. */
  answered(end: RunEnd): void;
  /** There is no answer for it here: nothing was sent to MySQL in its name. */
  fallBack(): void;
  /** It has left as it wished. */
  withdrawn(reason: StopReason): void;
}

/** Who keeps the runs that may be joined, and the places of those who wait. */
export interface CoalescedRunEvents {
  /** It has not begun yet: others may join. */
  opened(shared: CoalescedRun): void;
  /** From here on nobody may join. */
  closed(shared: CoalescedRun): void;
  /** So many do not wait behind a leader any more. */
  left(count: number): void;
}

/** Creates an execution for whoever it is handed. */
export type CreateRun = (events: RunEvents) => StatementRun;

/** An execution with its leader, whose sink takes the results, and its followers. */
export class CoalescedRun implements RunEvents {
  readonly afterwards = null;
  readonly key: string;
  run: StatementRun;
  sink: RunSink;
  readonly #events: CoalescedRunEvents;
  readonly #createRun: CreateRun;
  #leader: Participant;
  readonly #followers = new Set<Participant>();
  #hasBegun = false;

  constructor(key: string, leader: Participant, events: CoalescedRunEvents, createRun: CreateRun) {
    this.key = key;
    this.#leader = leader;
    this.sink = leader.events.sink;
    this.#events = events;
    this.#createRun = createRun;
    this.run = createRun(this);
  }

  start(): void {
    this.#events.opened(this);
    this.run.start();
  }

  isLedBy(participant: Participant): boolean {
    return this.#leader === participant;
  }

  /** Only while the run is open, and with a place in the queue. */
  join(follower: Participant): void {
    this.#followers.add(follower);
  }

  /** A participant does not want to wait any more. Without a participant the execution is not wanted either. */
  leave(participant: Participant, reason: StopReason): void {
    const isLeader = this.#leader === participant;
    if (isLeader && (this.#hasBegun || this.#followers.size === 0)) {
      this.run.stop(reason);
      return;
    }
    // Before it begins the execution keeps its place in the queue, whoever leads.
    if (isLeader) this.#promote();
    else if (this.#followers.delete(participant)) this.#events.left(1);
    else return;
    participant.withdrawn(reason);
  }

  runBegins(): void {
    this.#hasBegun = true;
    this.#events.closed(this);
    if (this.#followers.size === 0) return;
    this.sink = new OutgrowingSink(this.#leader.events.sink, () => this.#fallBack());
  }

  runEnded(end: RunEnd): void {
    this.#events.closed(this);
    const leader = this.#leader.events;
    if (this.#followers.size === 0) leader.runEnded(end);
    else if (end.kind === 'answered' && end.error === null) this.#share(end);
    else {
      leader.runEnded(end);
      if (isLeadersOwn(end)) this.#beginAnew();
      else if ('reason' in end && end.reason === 'stopping') this.#withdrawAll();
      else this.#fallBack();
    }
  }

  /** Bytes first: they are the leader's, who is served before those who came later. */
  #share(end: RunEnd): void {
    const held = this.#leader.events.sink.held();
    if (held === null) {
      this.#leader.events.runEnded(end);
      this.#fallBack();
      return;
    }
    const followers = this.#takeFollowers();
    for (const { events } of followers) events.sink.adopt(held);
    this.#leader.events.runEnded(end);
    for (const follower of followers) follower.answered(end);
  }

  /** Also when the reply begins to leave: no copy of it is kept, waiting on would be for nothing. */
  #fallBack(): void {
    for (const follower of this.#takeFollowers()) follower.fallBack();
  }

  /** The gateway stops: nothing is begun for them any more. */
  #withdrawAll(): void {
    for (const follower of this.#takeFollowers()) follower.withdrawn('stopping');
  }

  #takeFollowers(): readonly Participant[] {
    const followers = [...this.#followers];
    this.#followers.clear();
    this.#events.left(followers.length);
    return followers;
  }

  /** The first of the followers leads. */
  #promote(): void {
    const [next] = this.#followers;
    if (next === undefined) return;
    this.#followers.delete(next);
    this.#leader = next;
    this.sink = next.events.sink;
    this.#events.left(1);
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
