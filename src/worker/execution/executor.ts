// Creates the runs of a section: the one place that decides how a request's statements are run, and on which server.
import type { Token } from '../servers/consistency/token.ts';
import type { Admission } from '../servers/pool/queue.ts';
import type { Routed, Server } from '../servers/server.ts';
import type { Servers } from '../servers/servers.ts';
import { BatchRun } from './batch-run.ts';
import type {
  CreateRun,
  Execution,
  Launcher,
  RouteWish,
  RunContext,
  RunEnd,
  RunEvents,
} from './execution.ts';
import type { KeyStore } from './idempotency/key-store.ts';
import { KeyedRun } from './keyed-run.ts';
import { RoutedRun } from './routed-run.ts';
import { Run, type RunPlace } from './run.ts';
import type { RunTimes } from './run-times.ts';
import { endConcernsServer } from './server-errors.ts';
import { Coalescer } from './sharing.ts';
import type { Batch, Statement } from './work.ts';

/** A step of an open transaction: it runs on the session of that transaction. */
export interface OpenStep extends Pick<Statement, 'sql' | 'isRead' | 'isReadOnly' | 'effects'> {
  readonly kind: 'open step';
  /** Creates a run that the caller must start. */
  launch(after: Token | null, events: RunEvents, times: RunTimes): Execution;
}

/** The work of a request: one text, several statements in a transaction, or a step of an open transaction. */
export type Work = Statement | Batch | OpenStep;

/** Creates the runs of a section. */
export class Executor implements Launcher {
  readonly admission: Admission;
  /** Null: the section has one server. */
  readonly #servers: Servers | null;
  readonly #places = new Map<Server, RunPlace>();
  /** The place of the only server. */
  readonly #first: RunPlace;
  readonly #keys: KeyStore | null;

  /**
   * @param contexts one for each server
   * @param servers null: there is one
   * @param keys null: requests have no keys
   * @param coalesces whether identical reads share one execution
   */
  constructor(
    contexts: readonly RunContext[],
    servers: Servers | null,
    keys: KeyStore | null,
    coalesces: boolean,
  ) {
    for (const context of contexts) {
      this.#places.set(context.server, { context, coalescer: coalesces ? new Coalescer() : null });
    }
    const [first] = contexts;
    if (first === undefined) throw new Error('a section has a server');
    this.#first = this.#placeOf(first.server);
    this.#servers = servers;
    this.#keys = keys;
    this.admission = servers?.admission ?? first.pool.admission;
  }

  /** Requests that were answered by the execution of another one. */
  get coalesced(): number {
    let sum = 0;
    for (const { coalescer } of this.#places.values()) sum += coalescer?.coalesced ?? 0;
    return sum;
  }

  /**
   * Creates a run that the caller must start.
   * @param after what the client has seen before; null: it does not say
   * @param times kept by the run
   */
  create(work: Work, after: Token | null, events: RunEvents, times: RunTimes): Execution {
    switch (work.kind) {
      case 'statement':
        return this.#createRun(work, after, events, times);
      case 'batch':
        return this.#createBatchRun(work, after, events, times);
      case 'open step':
        return work.launch(after, events, times);
      default:
        return work satisfies never;
    }
  }

  launch(wish: RouteWish, create: CreateRun, events: RunEvents, times: RunTimes): Execution {
    if (this.#servers === null) return create(this.#first.context, events);
    const createOn = (server: Server, to: RunEvents) => create(this.#placeOf(server).context, to);
    return new RoutedRun(this.#servers, wish, createOn, events, times);
  }

  /** Reports changes of that server to something that was not launched here, until `forget`. */
  remember(routed: Routed, { server }: RunContext): void {
    this.#servers?.remember(routed, server);
  }

  forget(routed: Routed): void {
    this.#servers?.forget(routed);
  }

  /** Notes how something ended that was not launched here: its server may have changed its role. */
  ended({ server }: RunContext, end: RunEnd, isReadOnly: boolean): void {
    if (endConcernsServer(end, isReadOnly)) this.#servers?.suspect(server);
  }

  #createRun(
    statement: Statement,
    after: Token | null,
    events: RunEvents,
    times: RunTimes,
  ): Execution {
    const servers = this.#servers;
    if (servers === null) return new Run(this.#first, statement, after, events, times);
    const createOn = (server: Server, to: RunEvents) =>
      new Run(this.#placeOf(server), statement, after, to, times);
    const { isReadOnly } = statement;
    const wish = { isReadOnly, hasKey: false, after, needsPrimary: false };
    return new RoutedRun(servers, wish, createOn, events, times);
  }

  #createBatchRun(
    batch: Batch,
    after: Token | null,
    events: RunEvents,
    times: RunTimes,
  ): Execution {
    const { key, isReadOnly } = batch;
    if (key !== null) {
      if (this.#keys === null) throw new Error('a key came without an idempotency table');
      return new KeyedRun(this, this.#keys, { batch, key, after }, events, times);
    }
    const wish = { isReadOnly, hasKey: false, after, needsPrimary: false };
    const create: CreateRun = (context, to) =>
      new BatchRun(context, { batch, attempt: null, after }, to, times);
    return this.launch(wish, create, events, times);
  }

  #placeOf(server: Server): RunPlace {
    return this.#places.get(server) as RunPlace;
  }
}
