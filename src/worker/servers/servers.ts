// The servers of a section that has several: which of them statements run on now, and who is told when that changes.
// Must not know how statements are run, nor how a server is found to be what it is.
import type { Config } from '../../shared/config/config.ts';
import type { NoPrimary } from '../../shared/servers/judge.ts';
import type { PrimaryMemory } from '../../shared/servers/primary-memory.ts';
import type { RunEnd, Unrouted } from '../execution/outcome.ts';
import type { Route, Routed, Router, RouteWish } from '../execution/route.ts';
import type { RunContext } from '../execution/run-context.ts';
import { tellsOfServer } from '../execution/server-errors.ts';
import { IndexedSet } from '../indexed-set.ts';
import { type Accepts, Backend, type BackendSurroundings } from './backend.ts';
import { covers } from './consistency/coverage.ts';
import type { Token } from './consistency/token.ts';
import { Admission } from './pool/admission.ts';
import type { ReadyAnswer } from './pool/readiness.ts';
import type { ProposePrimary } from './shared-memory.ts';
import { type Standing, Topology } from './topology.ts';

/** What a section needs of its worker. */
export type SectionSurroundings = BackendSurroundings & {
  /** What is remembered of the section's primary; null: nothing. */
  readonly memory: PrimaryMemory | null;
  readonly proposePrimary: ProposePrimary;
};

/** One of them, as a route. */
class Server implements Route {
  readonly backend: Backend;
  readonly context: RunContext;
  /** What runs on it, or waits in its queue. */
  readonly running = new IndexedSet<Routed>();
  readonly #looks: () => number;

  constructor(backend: Backend, context: RunContext, looks: () => number) {
    this.backend = backend;
    this.context = context;
    this.#looks = looks;
  }

  get looks(): number {
    return this.#looks();
  }

  /** How much it has to do: sessions at work, and who waits for one. */
  get load(): number {
    const { busy, waiting } = this.backend.pool.observations();
    return busy + waiting;
  }
}

/** The servers of one section. Whoever creates them starts and closes them. */
export class Servers implements Router {
  readonly admission: Admission;
  readonly mostWaitMs: number | null;
  readonly backends: readonly Backend[];
  readonly #readsReplicas: boolean;
  readonly #servers: readonly Server[];
  readonly #topology: Topology;
  /** Who takes writes, or did last. */
  #lastPrimary: Server | null = null;
  readonly #waiting = new IndexedSet<Routed>();
  /** Where reads begin to look for the least busy one: of several with as much to do each has its turn. */
  #turn = 0;

  /** @param contextOf what statements run in on a backend */
  constructor(
    config: Config,
    surroundings: SectionSurroundings,
    contextOf: (backend: Backend) => RunContext,
  ) {
    const { log, memory, proposePrimary } = surroundings;
    const backends = config.candidates.map(
      (candidate, at) =>
        new Backend(config, candidate, surroundings, {
          accepts: this.#acceptsOf(at),
          part: () => this.#topology.partOf(at),
        }),
    );
    this.backends = backends;
    this.admission = new Admission(() => config.queue);
    this.mostWaitMs = config.failoverWaitMs;
    this.#readsReplicas = config.reads === 'replicas';
    this.#topology = new Topology({
      candidates: backends.map((backend) => ({
        address: backend.address,
        connect: (signal) => backend.connect(signal),
      })),
      section: config.section,
      maxLagMs: config.maxLagMs,
      memory,
      proposePrimary,
      onLook: () => this.#looked(),
      log,
    });
    this.#servers = backends.map(
      (backend, at) => new Server(backend, contextOf(backend), () => this.#topology.looksAt(at)),
    );
  }

  start(): void {
    this.#topology.start();
  }

  /** All workers remember this from now on. */
  rememberPrimary(memory: PrimaryMemory): void {
    this.#topology.remember(memory);
  }

  close(): void {
    this.#topology.close();
  }

  /** Whether a server that one of the backends has reached is the one that was looked at. */
  #acceptsOf(at: number): Accepts {
    return {
      opened: (identity) => this.#topology.confirms(at, identity),
      kept: (identity) => this.#topology.isKnown(at, identity),
    };
  }

  /** Several could take writes, and it cannot be told which should. */
  get isContested(): boolean {
    return this.#topology.isContested;
  }

  /** Why writes go nowhere; null: they go somewhere, or it is not known yet. */
  get none(): NoPrimary | null {
    return this.#topology.none;
  }

  standingOf(at: number): Standing {
    return this.#topology.standingOf(at);
  }

  /** Whoever takes writes; null: nobody. */
  get primary(): Backend | null {
    return this.#primary?.backend ?? null;
  }

  /** What each of them is, in the order of `host`. */
  get standings(): readonly Standing[] {
    return this.#servers.map((_server, at) => this.standingOf(at));
  }

  /** Whether any of them can serve. */
  get readiness(): ReadyAnswer {
    if (this.standings.some(({ role }) => role !== 'unusable')) return { isReady: true };
    const code = this.#topology.isDecided ? 'NO_SERVER' : 'STARTING';
    return { isReady: false, code, errno: null };
  }

  get whyNone(): Unrouted {
    return this.#topology.isContested ? 'two primaries' : 'no primary';
  }

  choose(wish: RouteWish, isAvoided: (route: Route) => boolean): Route | null {
    const mayBeReplica = wish.isReadOnly && this.#readsReplicas && !wish.needsPrimary;
    const reader = mayBeReplica ? this.#chooseReader(wish.after, isAvoided) : null;
    if (reader !== null) return reader;
    const primary = this.#primary;
    return primary === null || isAvoided(primary) ? null : primary;
  }

  routeOf(context: RunContext): Route {
    return this.#servers.find((server) => server.context === context) as Server;
  }

  remember(routed: Routed, route: Route | null): void {
    this.forget(routed);
    if (route === null) this.#waiting.add(routed);
    else (route as Server).running.add(routed);
  }

  forget(routed: Routed): void {
    if (this.#waiting.delete(routed)) return;
    for (const { running } of this.#servers) if (running.delete(routed)) return;
  }

  ended(route: Route, end: RunEnd, { isReadOnly }: Pick<RouteWish, 'isReadOnly'>): void {
    const isLost = end.kind === 'lost';
    const isUnreached = 'reason' in end && end.reason === 'database unreachable';
    const errno = end.kind === 'answered' ? (end.failure?.error.errno ?? 0) : 0;
    if (!isLost && !isUnreached && !tellsOfServer(errno, isReadOnly)) return;
    this.#topology.suspect(this.#servers.indexOf(route as Server));
  }

  get #primary(): Server | null {
    const at = this.#topology.primary;
    return at === null ? null : (this.#servers[at] as Server);
  }

  /** Null: the primary serves. @param after what the client has seen; null: it does not say */
  #chooseReader(after: Token | null, isAvoided: (route: Route) => boolean): Server | null {
    this.#turn = (this.#turn + 1) % this.#servers.length;
    if (after === null) return this.#chooseReplica(() => true, isAvoided);
    const hasSeen = (at: number) =>
      covers(this.#topology.partOf(at)?.position ?? null, after.position);
    const arrived = this.#chooseReplica(hasSeen, isAvoided);
    if (arrived !== null) return arrived;
    const seenOn = this.#chooseSeen(after);
    return seenOn !== null && !isAvoided(seenOn)
      ? seenOn
      : this.#chooseReplica(() => true, isAvoided);
  }

  /** The server that the client has seen, while it may be read from: it shows what it showed, and nothing need be waited for. */
  #chooseSeen({ server }: Token): Server | null {
    const at = this.#servers.findIndex((_one, index) => {
      return this.#topology.partOf(index)?.name === server;
    });
    const mayServe = at >= 0 && (at === this.#topology.primary || this.#topology.isReadable(at));
    return mayServe ? (this.#servers[at] as Server) : null;
  }

  #chooseReplica(
    maySee: (at: number) => boolean,
    isAvoided: (route: Route) => boolean,
  ): Server | null {
    const count = this.#servers.length;
    let best: Server | null = null;
    for (let step = 0; step < count; step += 1) {
      const at = (this.#turn + step) % count;
      const server = this.#servers[at] as Server;
      if (!this.#topology.isReadable(at) || isAvoided(server) || !maySee(at)) continue;
      if (best === null || server.load < best.load) best = server;
    }
    return best;
  }

  /** Those who wait may go on now; those on a server that cannot be used any more leave it. */
  #looked(): void {
    this.#noteSuccession();
    for (const [at, { running }] of this.#servers.entries()) {
      const { role } = this.standingOf(at);
      if (role === 'primary') continue;
      for (const routed of running) {
        if (role === 'unusable' || !this.#mayStay(routed, at)) routed.leaveRoute();
      }
      if (role === 'unusable') this.#severWrites(at);
    }
    for (const routed of this.#waiting) routed.reconsider();
  }

  /** What its tables are is asked anew of a server that takes writes from now on. */
  #noteSuccession(): void {
    const next = this.#primary;
    if (next === null || next === this.#lastPrimary) return;
    if (this.#lastPrimary !== null) next.backend.catalogue.outdate();
    this.#lastPrimary = next;
  }

  /**
   * Another one takes writes: of this one nothing is believed any more. A server that was frozen goes on with what it had been sent, and
   * would be sent COMMIT. A node of a cluster that still answers is left to end them: the cluster has the last word on each.
   */
  #severWrites(at: number): void {
    const { backend, running } = this.#servers[at] as Server;
    const hasWrites = [...running].some(({ isReadOnly }) => !isReadOnly);
    if (!this.#topology.hasSuccessor(at) || !hasWrites || this.#topology.isLivingNode(at)) return;
    backend.pool.sever(new Error('another server has become the primary'));
  }

  /** On a replica only what was declared read-only is left; and not where it lags. */
  #mayStay(routed: Routed, at: number): boolean {
    return routed.isReadOnly && this.#topology.isReadable(at);
  }
}
