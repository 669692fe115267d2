// Identical reads that share one execution: one leads, and those that have come before it began follow and get its answer.
// Must not know how statements are run, nor where they wait.
import type { Coalescer } from './coalescer.ts';
import type { RunEnd } from './outcome.ts';

/** One of them. */
export interface Sharer {
  /** There is no answer to share: it is run by itself, or leads. */
  beginAnew(): void;
  /** Nothing is run here any more. */
  endUnexecuted(reason: 'stopping' | 'server left'): void;
}

/** Why the leader ends though those that follow it may go on. */
const endsOneAlone: ReadonlySet<string> = new Set([
  'deadline',
  'waited too long',
  'client gone',
  'killed',
]);

/** What those have who share nothing: never written to. */
const nobody: never[] = [];

/** One run's part in it. */
export class Sharing<Run extends Sharer> {
  readonly run: Run;
  readonly #coalescer: Coalescer<Sharing<Run>>;
  /** Equal for identical reads. */
  readonly #key: string;
  #leader: Sharing<Run> | null = null;
  #followers: Sharing<Run>[] = nobody;

  constructor(run: Run, coalescer: Coalescer<Sharing<Run>>, key: string) {
    this.run = run;
    this.#coalescer = coalescer;
    this.#key = key;
  }

  /** The run that it follows, while that has not begun; null: it follows none, or one that runs. */
  get waitingLeader(): Run | null {
    const leader = this.#leader;
    return leader !== null && this.#coalescer.leaderOf(this.#key) === leader ? leader.run : null;
  }

  get hasFollowers(): boolean {
    return this.#followers.length > 0;
  }

  /** Follows who leads, if there is somebody and it may; else others may follow it. Returns whether it follows. */
  join(mayFollow: () => boolean): boolean {
    const leader = this.#coalescer.leaderOf(this.#key);
    if (leader === undefined) {
      this.#coalescer.open(this.#key, this);
      return false;
    }
    if (!mayFollow()) return false;
    this.#leader = leader;
    if (leader.#followers === nobody) leader.#followers = [this];
    else leader.#followers.push(this);
    return true;
  }

  /** From here on nobody may follow it. */
  close(): void {
    this.#coalescer.close(this.#key, this);
  }

  /** Follows no more. Returns whether it did. */
  leave(): boolean {
    const leader = this.#leader;
    if (leader === null) return false;
    const at = leader.#followers.indexOf(this);
    if (at >= 0) leader.#followers.splice(at, 1);
    this.#leader = null;
    return true;
  }

  /** The first of the followers leads the others from now on. Returns it; null: there is none. */
  handOver(): Run | null {
    const [next, ...others] = this.#followers;
    if (next === undefined) return null;
    this.close();
    this.#followers = nobody;
    next.#lead(others);
    return next.run;
  }

  /** Those that have followed it, and do no more. */
  takeFollowers(): readonly Run[] {
    const followers = this.#followers;
    this.#followers = nobody;
    for (const follower of followers) follower.#leader = null;
    return followers.map(({ run }) => run);
  }

  /** What ended the leader alone says nothing about the next one; a stop is for all; else each runs by itself. */
  endFollowers(end: RunEnd): void {
    const reason = 'reason' in end ? end.reason : null;
    if (reason !== null && endsOneAlone.has(reason)) {
      this.handOver()?.beginAnew();
    } else if (reason === 'stopping' || reason === 'server left') {
      for (const follower of this.takeFollowers()) follower.endUnexecuted(reason);
    } else {
      this.letGo();
    }
  }

  /** Each runs by itself: also when the reply begins to leave, for no copy of it is kept and waiting on would be for nothing. */
  letGo(): void {
    for (const follower of this.takeFollowers()) follower.beginAnew();
  }

  #lead(followers: Sharing<Run>[]): void {
    this.#leader = null;
    this.#followers = followers.length === 0 ? nobody : followers;
    for (const follower of followers) follower.#leader = this;
    this.#coalescer.open(this.#key, this);
  }
}
