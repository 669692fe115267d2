// Identical reads that share one execution: the first one leads, and those that come before it has begun follow and get its answer.

/** A worker's executions at one server that have not begun. One that has begun is not joined: no answer is older than its request. */
export class Coalescer<Run extends Sharer> {
  /** Requests that were answered by the execution of another one. */
  coalesced = 0;
  readonly #leaders = new Map<string, Sharing<Run>>();

  /** The execution that a request with this key may join. */
  leaderOf(key: string): Sharing<Run> | undefined {
    return this.#leaders.get(key);
  }

  /** From now on others may join, unless there is a leader already. */
  open(key: string, leader: Sharing<Run>): void {
    if (!this.#leaders.has(key)) this.#leaders.set(key, leader);
  }

  /** From now on no request may join this one. */
  close(key: string, leader: Sharing<Run>): void {
    if (this.#leaders.get(key) === leader) this.#leaders.delete(key);
  }
}

/** A read that may share its execution. */
export interface Sharer {
  /** There is no answer to share: it runs alone, or leads. */
  beginAgain(): void;
  /** Nothing runs here any more. */
  endUnexecuted(reason: 'stopping' | 'server left'): void;
}

/** Reasons that end only the leader: its followers may go on. */
const endsOneAlone: ReadonlySet<string> = new Set([
  'deadline',
  'waited too long',
  'client gone',
  'killed',
]);

/** The list of a run without followers; never written to. */
const none: never[] = [];

/** One run's part in sharing an execution. */
export class Sharing<Run extends Sharer> {
  readonly run: Run;
  readonly #coalescer: Coalescer<Run>;
  /** Equal for identical reads. */
  readonly #key: string;
  #leader: Sharing<Run> | null = null;
  #followers: Sharing<Run>[] = none;

  constructor(run: Run, coalescer: Coalescer<Run>, key: string) {
    this.run = run;
    this.#coalescer = coalescer;
    this.#key = key;
  }

  /** The run that it follows, while that has not begun; null: it follows none, or that one runs. */
  get waitingLeader(): Run | null {
    const leader = this.#leader;
    return leader !== null && this.#coalescer.leaderOf(this.#key) === leader ? leader.run : null;
  }

  get hasFollowers(): boolean {
    return this.#followers.length > 0;
  }

  /** Follows the leader, if there is one and `mayFollow` agrees; otherwise others may follow it. Returns whether it follows. */
  join(mayFollow: () => boolean): boolean {
    const leader = this.#coalescer.leaderOf(this.#key);
    if (leader === undefined) {
      this.#coalescer.open(this.#key, this);
      return false;
    }
    if (!mayFollow()) return false;
    this.#leader = leader;
    if (leader.#followers === none) leader.#followers = [this];
    else leader.#followers.push(this);
    return true;
  }

  /** From now on no other run may follow it. */
  close(): void {
    this.#coalescer.close(this.#key, this);
  }

  /** Stops following. Returns whether it followed a leader. */
  leave(): boolean {
    const leader = this.#leader;
    if (leader === null) return false;
    const at = leader.#followers.indexOf(this);
    if (at >= 0) leader.#followers.splice(at, 1);
    this.#leader = null;
    return true;
  }

  /** The first follower leads the others from now on. Returns it; null: there is none. */
  handOver(): Run | null {
    const [next, ...others] = this.#followers;
    if (next === undefined) return null;
    this.close();
    this.#followers = none;
    next.#lead(others);
    return next.run;
  }

  /** Takes the followers away, and returns them. */
  takeFollowers(): readonly Run[] {
    const followers = this.#followers;
    this.#followers = none;
    for (const follower of followers) follower.#leader = null;
    return followers.map(({ run }) => run);
  }

  /**
   * If only the leader ended, a follower takes over. A shutdown, or the loss of the server, ends all. Otherwise each runs alone.
   * @param reason why the leader has ended; null: it was not stopped
   */
  endFollowers(reason: string | null): void {
    if (reason !== null && endsOneAlone.has(reason)) {
      this.handOver()?.beginAgain();
    } else if (reason === 'stopping' || reason === 'server left') {
      for (const follower of this.takeFollowers()) follower.endUnexecuted(reason);
    } else {
      this.letGo();
    }
  }

  /** Each follower runs alone. Also called when the reply begins to leave: no copy of it is kept for them. */
  letGo(): void {
    for (const follower of this.takeFollowers()) follower.beginAgain();
  }

  #lead(followers: Sharing<Run>[]): void {
    this.#leader = null;
    this.#followers = followers.length === 0 ? none : followers;
    for (const follower of followers) follower.#leader = this;
    this.#coalescer.open(this.#key, this);
  }
}
