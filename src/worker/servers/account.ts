// The account of each client in a worker, over all sections: what its requests hold, and how many wait.
import { type Client, defaultClient } from '../../shared/clients/client.ts';

/** Sums the time of holds that may overlap, those that go on included. Times are those of performance.now, in ms. */
export class HeldTime {
  /** Holds that go on. */
  running = 0;
  #endedMs = 0;
  /** The sum of the beginnings of those that go on. */
  #begun = 0;

  begin(now: number): void {
    this.running += 1;
    this.#begun += now;
  }

  /** @param since when that hold began */
  end(since: number, now: number): void {
    this.running -= 1;
    // The sum of nothing is 0, so that rounding does not add up.
    this.#begun = this.running === 0 ? 0 : this.#begun - since;
    this.#endedMs += now - since;
  }

  /** Adds the time of a hold that is over and was not counted as running. */
  add(ms: number): void {
    this.#endedMs += ms;
  }

  /** The sum at that time, in ms. */
  at(now: number): number {
    return this.#endedMs + this.running * now - this.#begun;
  }
}

/** The numbers of one client in one worker, for metrics. */
export type AccountObservations = {
  readonly client: string;
  /** The time for which its requests have held connections so far. In the pipeline a statement holds one while it is the first without an answer. */
  readonly heldSeconds: number;
  readonly inFlight: number;
  readonly waiting: number;
};

/**
 * One client in one worker. A request is outside, waits, or is in flight:
 *
 *     outside ──> waiting ──> in flight ──> outside
 *        │           └──────────────────────────^     rejected, or withdrawn
 *        └──────────────────────^                     it need not wait
 *
 * A request is in flight while it has a session, or a place in the pipeline. An open transaction is in flight for as long as it has its
 * session. At `max_in_flight` all further requests wait.
 */
export class Account {
  /** As the clients file in force describes it, or did when it had the client. */
  client: Client;
  /** Requests that wait in any place. */
  waiting = 0;
  readonly held = new HeldTime();
  #inFlight = 0;
  /** Called when a request of it may run that could not before. */
  readonly #waking = new Set<() => void>();

  constructor(client: Client) {
    this.client = client;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** How many more requests may run now. */
  get room(): number {
    return (this.client.maxInFlight ?? Number.POSITIVE_INFINITY) - this.#inFlight;
  }

  /** The longest wait of its requests, in ms; infinite: only the section's limit counts. */
  get maxWaitMs(): number {
    return this.client.maxWaitMs ?? Number.POSITIVE_INFINITY;
  }

  /** How many requests may wait, beside those of the section. */
  get places(): number {
    return this.client.queue ?? Number.POSITIVE_INFINITY;
  }

  /** A request of it is in flight from now on, until `leave`. */
  enter(): void {
    this.#inFlight += 1;
  }

  leave(): void {
    this.#inFlight -= 1;
    // Without a limit no request waits for this.
    if (this.client.maxInFlight !== null) this.#wakeWaiting();
  }

  /** Whether no request of it waits or is in flight. */
  get isIdle(): boolean {
    return this.#inFlight === 0 && this.waiting === 0;
  }

  /** Its limits may be others from now on. */
  replace(client: Client): void {
    this.client = client;
    this.#wakeWaiting();
  }

  #wakeWaiting(): void {
    // There may be no room, because the limit was lowered meanwhile.
    if (this.waiting > 0 && this.room > 0) {
      for (const wake of this.#waking) wake();
    }
  }

  /** Calls `wake` when a request may run that could not before. Returns what ends that. */
  onRoom(wake: () => void): () => void {
    this.#waking.add(wake);
    return () => void this.#waking.delete(wake);
  }

  observations(now: number): AccountObservations {
    const { client, waiting } = this;
    const heldSeconds = this.held.at(now) / 1000;
    return { client: client.name, heldSeconds, inFlight: this.#inFlight, waiting };
  }
}

/** The accounts of a worker: of the clients in force, and of removed ones as long as requests of them wait or run. */
export class Accounts {
  readonly #all = new Map<string, Account>();
  #inForce: ReadonlySet<string> = new Set();
  /** The account of most requests where no clients are configured. */
  readonly #default = new Account(defaultClient);

  /** @param clients those that may send requests */
  constructor(clients: readonly Client[] = []) {
    this.replace(clients);
  }

  /** The clients that may send requests from now on. Their limits hold at once, also for requests that wait. */
  replace(clients: readonly Client[]): void {
    this.#inForce = new Set(clients.map(({ name }) => name));
    for (const client of clients) {
      const account = this.#all.get(client.name);
      if (account === undefined) this.#add(client);
      else account.replace(client);
    }
  }

  /** The account of a client, by its name. */
  of(client: Client): Account {
    if (client === this.#default.client) return this.#default;
    return this.#all.get(client.name) ?? this.#add(client);
  }

  has(name: string): boolean {
    return this.#all.has(name);
  }

  /** Forgets clients that were removed, if no request of them waits or runs. To be called every few seconds. */
  sweep(): void {
    for (const [name, account] of this.#all) {
      if (account.isIdle && !this.#inForce.has(name)) this.#all.delete(name);
    }
  }

  /** The numbers of each client. @param now performance.now */
  observations(now: number): readonly AccountObservations[] {
    return Array.from(this.#all.values(), (account) => account.observations(now));
  }

  #add(client: Client): Account {
    const account = client.name === defaultClient.name ? this.#default : new Account(client);
    this.#all.set(client.name, account);
    return account;
  }
}
