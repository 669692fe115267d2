// Probes one candidate again and again, on a connection of its own: reports each view of the server, or why there is none.
import { performance } from 'node:perf_hooks';
import { quit } from '../../shared/mysql/commands.ts';
import { type ConnectFailure, describeConnectFailure } from '../../shared/mysql/connect-failure.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { askView, prepareQuestions, type Questions } from '../../shared/servers/ask-view.ts';
import type { ServerView } from '../../shared/servers/server-view.ts';
import { prepare, within } from './pool/connecting.ts';

/** Connecting, if need be, and all answers. */
const boundMs = 1_000;
/** Renewing an open connection leaves the other half for the question on the old one: DNS may be silent. */
const renewMs = 500;
/** The pause between two probes is at least this long, however often a probe is wanted. */
const minPauseMs = 50;

export interface ProbeEvents {
  seen(view: ServerView): void;
  unseen(failure: ConnectFailure): void;
  /** How long to wait until the next probe, in ms. */
  intervalMs(): number;
  /** How old a connection may be, in ms, before another one is opened: its name may lead to another server by then. */
  maxAgeMs(): number;
}

/** A connection, and what can be asked on it. */
type Open = {
  readonly connection: Connection;
  readonly questions: Questions;
  readonly openedAt: number;
};

/** A candidate's probe. Its owner starts and closes it. */
export class Prober {
  readonly #connect: (signal: AbortSignal) => Promise<Connection>;
  readonly #events: ProbeEvents;
  readonly #closing = new AbortController();
  #open: Open | null = null;
  #isProbing = false;
  #isWanted = false;
  /** The probe in progress is the last one on its connection. It is not cut off, because that would count as a failure. */
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
   * Probes as soon as possible, because something does not fit the latest view.
   * @param reconnect on a new connection, so that the server's name is resolved again
   */
  hurry(reconnect = false): void {
    this.#isWanted = true;
    if (this.#isProbing) this.#isOutdated ||= reconnect;
    else if (reconnect) this.#drop();
    if (!this.#isProbing) this.#probeIn(this.#lastAt + minPauseMs - performance.now());
  }

  #probeIn(ms: number): void {
    if (this.#closing.signal.aborted) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#probe(), Math.max(0, ms));
  }

  async #probe(): Promise<void> {
    this.#isProbing = true;
    this.#isWanted = false;
    const ask = (signal: AbortSignal) => this.#ask(signal);
    const found = await within(this.#closing.signal, boundMs, 'no answer', ask).catch(
      describeConnectFailure,
    );
    const isSeen = 'askedAt' in found;
    if (!isSeen || this.#isOutdated) this.#drop();
    this.#isOutdated = false;
    if (this.#closing.signal.aborted) return;
    if (isSeen) this.#events.seen(found);
    else this.#events.unseen(found);
    this.#lastAt = performance.now();
    this.#isProbing = false;
    this.#probeIn(this.#isWanted ? minPauseMs : this.#events.intervalMs());
  }

  async #ask(signal: AbortSignal): Promise<ServerView> {
    const { connection, questions } = await this.#choose(signal);
    return prepare(connection, signal, () => askView(connection, questions));
  }

  /** The open connection, or a new one. If renewing an old connection fails, the old one stays: the server may be full, or DNS silent. */
  async #choose(signal: AbortSignal): Promise<Open> {
    const former = this.#open;
    const ageMs = former === null ? 0 : performance.now() - former.openedAt;
    if (former === null) return this.#reopen(signal);
    if (ageMs <= this.#events.maxAgeMs()) return former;
    try {
      return await within(signal, renewMs, 'no answer', (bound) => this.#reopen(bound));
    } catch (error) {
      if (this.#open !== former || signal.aborted) throw error;
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

  /** If the connection is lost between two probes, the server is gone, or about to go. */
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
