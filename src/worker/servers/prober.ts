// Looks at one candidate again and again, on a connection of its own, and tells what it saw or why it saw nothing.
// Must not know the other candidates, nor what follows.
import { performance } from 'node:perf_hooks';
import { quit } from '../../shared/mysql/commands.ts';
import { type ConnectFailure, describeConnectFailure } from '../../shared/mysql/connect-failure.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { askView, prepareQuestions, type Questions } from '../../shared/servers/ask-view.ts';
import type { ServerView } from '../../shared/servers/server-view.ts';
import { prepare, within } from './pool/connecting.ts';

/** Connecting, if need be, and all answers. */
const boundMs = 1_000;
/** Two looks have a pause of so much at least, however often somebody asks for one. */
const leastPauseMs = 50;

/** Who is told. */
export interface ProbeEvents {
  seen(view: ServerView): void;
  unseen(failure: ConnectFailure): void;
  /** How long to wait until the next look, in ms. */
  readonly intervalMs: number;
  /** How old a connection may be, in ms, before another one is opened: its name may lead to another server meanwhile. */
  readonly mostAgeMs: number;
}

/** What is asked on one connection. */
type Open = {
  readonly connection: Connection;
  readonly questions: Questions;
  readonly openedAt: number;
};

/** A candidate's probe. Whoever creates it starts and closes it. */
export class Prober {
  readonly #connect: (signal: AbortSignal) => Promise<Connection>;
  readonly #events: ProbeEvents;
  readonly #closing = new AbortController();
  #open: Open | null = null;
  #isProbing = false;
  #isWanted = false;
  /** The look that is under way is the last one on its connection: it is not cut off, which would count as a failure. */
  #isOutdated = false;
  #lastAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;

  constructor(connect: (signal: AbortSignal) => Promise<Connection>, events: ProbeEvents) {
    this.#connect = connect;
    this.#events = events;
  }

  start(): void {
    void this.#probe();
  }

  close(): void {
    this.#closing.abort(new Error('the probe is closing'));
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#drop();
  }

  /**
   * Looks as soon as may be: somebody has seen something that does not fit.
   * @param anew on a new connection, whose name is resolved anew
   */
  hurry(anew = false): void {
    this.#isWanted = true;
    if (this.#isProbing) this.#isOutdated ||= anew;
    else if (anew) this.#drop();
    if (!this.#isProbing) this.#probeIn(this.#lastAt + leastPauseMs - performance.now());
  }

  #probeIn(ms: number): void {
    if (this.#closing.signal.aborted) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#probe(), Math.max(0, ms));
  }

  async #probe(): Promise<void> {
    this.#isProbing = true;
    this.#isWanted = false;
    const work = (signal: AbortSignal) => this.#look(signal);
    const look = await within(this.#closing.signal, boundMs, 'no answer', work).catch(
      describeConnectFailure,
    );
    const isSeen = 'askedAt' in look;
    if (!isSeen || this.#isOutdated) this.#drop();
    this.#isOutdated = false;
    if (this.#closing.signal.aborted) return;
    if (isSeen) this.#events.seen(look);
    else this.#events.unseen(look);
    this.#lastAt = performance.now();
    this.#isProbing = false;
    this.#probeIn(this.#isWanted ? leastPauseMs : this.#events.intervalMs);
  }

  async #look(signal: AbortSignal): Promise<ServerView> {
    const { connection, questions } = await this.#choose(signal);
    return prepare(connection, signal, () => askView(connection, questions));
  }

  /** The connection that is there, or a new one. One that is only renewed stays where that fails: the server may be full. */
  async #choose(signal: AbortSignal): Promise<Open> {
    const former = this.#open;
    const ageMs = former === null ? 0 : performance.now() - former.openedAt;
    if (former !== null && ageMs <= this.#events.mostAgeMs) return former;
    try {
      return await this.#reopen(signal);
    } catch (error) {
      if (former === null || this.#open !== former || signal.aborted) throw error;
      return former;
    }
  }

  async #reopen(signal: AbortSignal): Promise<Open> {
    const connection = await this.#connect(signal);
    const questions = await prepare(connection, signal, () => prepareQuestions(connection));
    const former = this.#open;
    this.#open = { connection, questions, openedAt: performance.now() };
    connection.watch(() => this.#lost(connection));
    if (former !== null) quit(former.connection);
    return this.#open;
  }

  /** Not asked for between two looks: the server has gone, or is about to. */
  #lost(connection: Connection): void {
    if (this.#open?.connection !== connection) return;
    this.#open = null;
    if (!this.#closing.signal.aborted && !this.#isProbing) this.hurry();
  }

  #drop(): void {
    const open = this.#open;
    this.#open = null;
    open?.connection.destroy(new Error('the probe was given up'));
  }
}
