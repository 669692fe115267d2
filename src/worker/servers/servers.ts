// The servers of a section that has several: chooses the one that a request runs on, and reports changes to the requests that run there.
import type { Config } from '../../shared/config/config.ts';
import { IndexedSet } from '../../shared/indexed-set.ts';
import type { PrimaryMemory } from '../../shared/servers/primary-memory.ts';
import type { Account } from './account.ts';
import { covers, type Token } from './consistency/token.ts';
import { ClientLine } from './pool/client-line.ts';
import { Admission } from './pool/queue.ts';
import type { ReadyAnswer } from './pool/readiness.ts';
import { type Excess, findExcess, type Newcomer, type Waitlist } from './pool/waitlist.ts';
import { type Routed, Server, type ServerSurroundings, type WaitingForServer } from './server.ts';
import type { ProposePrimary } from './shared-memory.ts';
import { Topology } from './topology.ts';

/** The parts that a section gets from its worker. */
export type SectionSurroundings = ServerSurroundings & {
  /** The instance's memory of the section's primary; null: none. */
  readonly memory: PrimaryMemory | null;
  readonly proposePrimary: ProposePrimary;
};

/** The conditions of a request for its server. */
export type Requirements = {
  /** Declared read-only: it may run on a replica, and once more elsewhere while nothing of its reply has left. */
  readonly isReadOnly: boolean;
  /** The client's token; null: it sends none. */
  readonly after: Token | null;
  /** A replica did not show what the client has seen: the primary is asked. */
  readonly needsPrimary: boolean;
};

/** The servers of one section. Its owner starts and closes them. */
export class Servers implements Waitlist {
  /** The requests that wait for a server, besides those in the queues of pools. */
  readonly admission: Admission;
  /** How long a request waits for a server at most, in ms; null: until its deadline. */
  readonly maxWaitMs: number | null;
  /** In the order of `host`. */
  readonly all: readonly Server[];
  readonly #readsReplicas: boolean;
  readonly topology: Topology;
  /** The primary, or the last one. */
  #lastPrimary: Server | null = null;
  readonly #waiting = new IndexedSet<WaitingForServer>();
  /** The same, by client. */
  readonly #lines = new Map<Account, ClientLine<WaitingForServer, Account>>();
  /** The server at which reads begin to look for the least busy one, so that equally busy servers take turns. */
  #next = 0;

  constructor(config: Config, surroundings: SectionSurroundings) {
    const { log, memory, proposePrimary } = surroundings;
    this.all = config.candidates.map(
      (candidate, at) =>
        new Server(config, candidate, surroundings, {
          confirms: (identity) => this.topology.confirms(at, identity),
          isKnown: (identity) => this.topology.isKnown(at, identity),
          state: () => this.topology.stateOf(at),
        }),
    );
    this.admission = new Admission(() => config.queue);
    this.admission.addWaitlist(this);
    this.maxWaitMs = config.failoverWaitMs;
    this.#readsReplicas = config.reads === 'replicas';
    this.topology = new Topology({
      candidates: this.all.map((server) => ({
        address: server.address,
        connect: (signal) => server.connect(signal),
        onReturn: () => server.returned(),
      })),
      section: config.section,
      maxLagMs: config.maxLagMs,
      memory,
      proposePrimary,
      onJudged: () => this.#judged(),
      log,
    });
  }

  start(): void {
    this.topology.start();
  }

  close(): void {
    this.topology.close();
  }

  /** Several servers could take writes, and it is not known which one should. */
  get isContested(): boolean {
    return this.topology.isContested;
  }

  get primary(): Server | null {
    const at = this.topology.primary;
    return at === null ? null : (this.all[at] as Server);
  }

  /** Whether any server can serve. */
  get readiness(): ReadyAnswer {
    if (this.topology.statuses.some(({ role }) => role !== 'unusable')) return { isReady: true };
    const errno = this.topology.refusal;
    if (errno !== null) return { isReady: false, code: 'DATABASE_REFUSED', errno };
    const code = this.topology.isDecided ? 'NO_SERVER' : 'STARTING';
    return { isReady: false, code, errno: null };
  }

  /** The server that a request may run on now; null: there is none. @param isAvoided whether it must not run there */
  choose(
    { isReadOnly, after, needsPrimary }: Requirements,
    isAvoided: (server: Server) => boolean,
  ): Server | null {
    const mayBeReplica = isReadOnly && this.#readsReplicas && !needsPrimary;
    const reader = mayBeReplica ? this.#chooseReader(after, isAvoided) : null;
    if (reader !== null) return reader;
    const { primary } = this;
    return primary === null || isAvoided(primary) ? null : primary;
  }

  /** How often a server has been probed: more than before means that there may be news of it. */
  probesOf(server: Server): number {
    return this.topology.probesOf(this.all.indexOf(server));
  }

  /** From here on a request on a server is called when roles change; `forget` ends that. */
  remember(routed: Routed, server: Server): void {
    this.forget(routed);
    server.running.add(routed);
  }

  /** The same for a request that waits for a server. It needs a place of the admission. */
  addWaiting(waiting: WaitingForServer): void {
    this.forget(waiting);
    const { account } = waiting.waitLimit;
    const line = this.#lines.get(account) ?? new ClientLine(account);
    this.#lines.set(account, line);
    line.add(waiting);
    this.#waiting.add(waiting);
  }

  forget(routed: Routed): void {
    for (const { running } of this.all) if (running.delete(routed)) return;
    const waiting = routed as WaitingForServer;
    if (!this.#waiting.delete(waiting)) return;
    const { account } = waiting.waitLimit;
    const line = this.#lines.get(account);
    line?.remove(waiting);
    if (line?.length === 0) this.#lines.delete(account);
  }

  findExcess(newcomer: Newcomer): Excess<WaitingForServer> | null {
    const { account, more } = newcomer;
    const own = this.#lines.get(account);
    const ownWeight = ((own?.length ?? 0) + more) / account.client.share;
    return findExcess(
      this.#lines.values(),
      own,
      newcomer,
      (line) => line.length / line.account.client.share,
      ownWeight,
    );
  }

  reject(waiting: WaitingForServer): void {
    waiting.losePlace();
  }

  /** A request on a server has ended in a way that may tell of another role: the server is probed now. */
  suspect(server: Server): void {
    this.topology.suspect(this.all.indexOf(server));
  }

  /** Null: the primary serves. @param after what the client has seen; null: it does not say */
  #chooseReader(after: Token | null, isAvoided: (server: Server) => boolean): Server | null {
    this.#next = (this.#next + 1) % this.all.length;
    if (after === null) return this.#chooseReplica(() => true, isAvoided);
    const hasSeen = (at: number) =>
      covers(this.topology.stateOf(at)?.position ?? null, after.position);
    const arrived = this.#chooseReplica(hasSeen, isAvoided);
    if (arrived !== null) return arrived;
    const seenOn = this.#chooseSeen(after);
    return seenOn !== null && !isAvoided(seenOn)
      ? seenOn
      : this.#chooseReplica(() => true, isAvoided);
  }

  /** The server that the client has read from, if it may be read from: it still shows what it showed, so the client need not wait. */
  #chooseSeen({ server }: Token): Server | null {
    const at = this.all.findIndex((_one, index) => this.topology.stateOf(index)?.name === server);
    const mayServe = at >= 0 && (at === this.topology.primary || this.topology.isReadable(at));
    return mayServe ? (this.all[at] as Server) : null;
  }

  #chooseReplica(
    maySee: (at: number) => boolean,
    isAvoided: (server: Server) => boolean,
  ): Server | null {
    const count = this.all.length;
    let best: Server | null = null;
    for (let step = 0; step < count; step += 1) {
      const at = (this.#next + step) % count;
      const server = this.all[at] as Server;
      if (!this.topology.isReadable(at) || isAvoided(server) || !maySee(at)) continue;
      if (best === null || loadOf(server) < loadOf(best)) best = server;
    }
    return best;
  }

  /** Waiting requests may go on now. Requests on a server that cannot be used any more leave it. */
  #judged(): void {
    this.#noteSuccession();
    for (const [at, { running }] of this.all.entries()) {
      const { role } = this.topology.statusOf(at);
      if (role === 'primary') continue;
      for (const routed of running) {
        if (role === 'unusable' || !this.#mayStay(routed, at)) routed.leaveServer();
      }
      if (role === 'unusable') this.#severWrites(at);
    }
    for (const routed of this.#waiting) routed.reconsider();
  }

  /** The catalogue of a new primary is outdated. */
  #noteSuccession(): void {
    const next = this.primary;
    if (next === null || next === this.#lastPrimary) return;
    if (this.#lastPrimary !== null) next.catalogue.outdate();
    this.#lastPrimary = next;
  }

  /**
   * Another server takes writes, so no answer of this one is to be believed. A frozen server that wakes up would go on with what it was
   * sent, and get a COMMIT. A cluster node that still answers may finish its writes, because the cluster decides on each.
   */
  #severWrites(at: number): void {
    const { pool, running } = this.all[at] as Server;
    const hasWrites = [...running].some(({ isReadOnly }) => !isReadOnly);
    if (!this.topology.hasSuccessor(at) || !hasWrites || this.topology.isLivingNode(at)) return;
    pool.sever(new Error('another server has become the primary'));
  }

  /** Only a request that was declared read-only may stay on a replica, and only if that does not lag. */
  #mayStay(routed: Routed, at: number): boolean {
    return routed.isReadOnly && this.topology.isReadable(at);
  }
}

/** How much a server has to do: its busy sessions, and the requests that wait for one. */
function loadOf({ pool }: Server): number {
  const { busy, waiting } = pool.observations();
  return busy + waiting;
}
