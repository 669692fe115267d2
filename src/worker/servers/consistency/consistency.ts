// Compares what one server shows with what a client has seen: waits until the server shows as much, and says what the client has seen then.
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { fetchRows, RefusedError } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import { formatSets, subtractSets, uniteSets } from '../../../shared/servers/gtid-sets.ts';
import type { Position } from '../../../shared/servers/position.ts';
import type { Control } from '../pool/control.ts';
import type { Session } from '../pool/session.ts';
import { type PositionAnswer, type PositionQuery, queryFor } from './position-query.ts';
import { formatEvents, type MariadbEvents, type SeenPosition, type Token } from './token.ts';

/** A worker's present knowledge of the server. */
export type ServerState = {
  /** The server's own name. */
  readonly name: string;
  /** Distinguishes one run of the server from another: it may have lost something in a crash. */
  readonly run: string;
  /** Whether it takes writes. A primary never gets what it lacks now. */
  readonly isPrimary: boolean;
  /** Whether it is a node of a Galera cluster. */
  readonly isNode: boolean;
  /** At the latest probe; null: it has none, or does not report it. */
  readonly position: Position | null;
};

/**
 * Whether a server shows what a client has seen. `behind`: not within a second, and another server may. `lost`: provably not any more.
 * `unverified`: the server cannot say.
 */
export type PositionCheck = 'ready' | 'behind' | 'lost' | 'unverified';

/** The client's token after a statement. */
export type TokenResult = {
  /** An upper bound; null: it is not known. */
  readonly token: Token | null;
  /**
   * Whether something that it had seen before is missing here. `behind`: a replica may still get it. `lost`: the primary provably does not
   * have it.
   */
  readonly missing: 'nothing' | 'behind' | 'lost';
  /** Whether it is certain that the statement saw at least what its client had seen, and the token bounds what it saw. */
  readonly isVerified: boolean;
};

/** It is not known what was seen. */
export const unknownToken: TokenResult = { token: null, missing: 'nothing', isVerified: false };

/** The same, if the server could not say whether it shows what the client had seen. Without a name in the token, no server counts as showing it. */
export function unverified(seen: TokenResult): TokenResult {
  const { token } = seen;
  return { ...seen, token: token === null ? null : { ...token, server: '' }, isVerified: false };
}

const maxWaitMs = 1_000;
const pollMs = 1;
/** The query costs a node more than it costs a primary. */
const nodePollMs = 5;
/** Group commits after which the storage engine shows what was in the log before them. */
const laterCommits = 3;
/** Successive polls between which no transaction was committed. */
const enoughQuiet = 2;
/** ER_LOCK_WAIT_TIMEOUT: Galera's answer if a position was not reached in time. */
const notReached = 1205;
/** ER_UNKNOWN_COM_ERROR: the node has left its cluster, or has not joined it yet. */
const notReady = 1047;
const syncedSql = 'SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 0';
const progressSql =
  "SHOW GLOBAL STATUS WHERE Variable_name IN ('Binlog_group_commits', 'Rpl_semi_sync_master_wait_sessions')";

/** One server's consistency, as one worker knows it. */
export class Consistency {
  readonly #state: () => ServerState | null;
  /**
   * The transactions of one run of the server, by its latest answer, and those that it certainly shows: the log may be ahead of the engine.
   */
  #known: { readonly run: string; readonly answer: PositionAnswer; visible: MariadbEvents } | null =
    null;
  readonly #last = new WeakMap<Session, PositionAnswer>();

  /** @param state what the server is now; null: that is not known */
  constructor(state: () => ServerState | null) {
    this.#state = state;
  }

  /** The query to send in the same write as a statement, behind it. */
  queryOn(connection: Connection): PositionQuery {
    return queryFor(connection, this.#state() ?? { isNode: false, isPrimary: false });
  }

  /** Whether a statement must not run before `waitForPosition`. */
  mustWait({ server, position }: Token, isRead: boolean): boolean {
    const state = this.#state();
    if (state === null) return true;
    if (state.name !== server) return !isRead || !this.#isKnownToShow(state, position);
    // The same server still shows what it showed, unless it lost it: a read learns that behind its statement, a write must know before.
    return !isRead && !this.#isKnownToHave(state, position);
  }

  /**
   * Waits until the session's server shows what the client has seen, a second at most. Outside of any transaction. Rejects if the
   * connection is lost.
   */
  async waitForPosition(
    { connection }: Session,
    { server, position }: Token,
  ): Promise<PositionCheck> {
    const state = this.#state();
    if (state === null) return 'behind';
    const isSame = state.name === server;
    if ((isSame || state.isPrimary) && !this.#isKnownToHave(state, position)) {
      const answer = await this.#ask(connection, state);
      const has = answer?.has(position) ?? null;
      if (has === false) return 'lost';
      if (has === null && (position.kind === 'mariadb' || (isSame && position.kind === 'galera')))
        return 'unverified';
    }
    if (isSame) return 'ready';
    const check = await this.#wait(connection, state, position);
    return check === 'behind' && state.isPrimary ? 'unverified' : check;
  }

  /** The client's token after a statement on a session. @param row the answer to the query; null: there was none */
  seenOn(
    session: Session,
    row: readonly (string | null)[] | null,
    before: Token | null,
    isWriteAlone: boolean,
  ): TokenResult {
    const state = this.#state();
    const last = this.#last.get(session) ?? null;
    const { connection } = session;
    const answer = row === null ? null : this.queryOn(connection).read(row, last);
    this.#last.delete(session);
    if (state === null || answer === null) return unknownToken;
    this.#last.set(session, answer);
    this.#note(state, answer);
    if (last !== null && answer.ownWrite !== null) this.#noteVisible(state, answer.ownWrite);
    const own = isWriteAlone && last !== null ? answer.ownWrite : null;
    return describeSeen(state, answer, own ?? answer.position, before);
  }

  /** Forgets the session's last answer, so that a later write is not taken for the one before. */
  forget(session: Session): void {
    this.#last.delete(session);
  }

  /** The same, asked on another connection while the statement's rows still arrive: the statement's snapshot is older. */
  async seenNow(connection: Connection, before: Token | null): Promise<TokenResult> {
    const state = this.#state();
    const answer = state === null ? null : await this.#ask(connection, state);
    if (state === null || answer === null) return unknownToken;
    return describeSeen(state, answer, answer.position, before);
  }

  /** The client's token before a statement, if the server shows what it covers: the server was waited for, or is the client's own. */
  describeShown({ position }: Token): TokenResult {
    const state = this.#state();
    if (state === null) return unknownToken;
    return { token: { server: state.name, position }, missing: 'nothing', isVerified: true };
  }

  #isKnownToHave({ run }: ServerState, position: SeenPosition): boolean {
    return this.#known?.run === run && this.#known.answer.has(position) === true;
  }

  /** A replica still shows a position that it has reached once. A primary may have something in its log that it does not show yet. */
  #isKnownToShow(state: ServerState, position: SeenPosition): boolean {
    if (state.isPrimary || !this.#isKnownToHave(state, position)) return false;
    return (
      position.kind === 'mysql' ||
      (position.kind === 'mariadb' && this.#isVisible(state, position.events))
    );
  }

  async #ask(connection: Connection, state: ServerState): Promise<PositionAnswer | null> {
    const query = this.queryOn(connection);
    const [row] = await fetchRows(connection, query.sql);
    const answer = row === undefined ? null : query.read(row, null);
    if (answer !== null) this.#note(state, answer);
    return answer;
  }

  #note({ run }: ServerState, answer: PositionAnswer): void {
    const visible = this.#known?.run === run ? this.#known.visible : new Map();
    this.#known = { run, answer, visible };
  }

  #noteVisible({ run }: ServerState, position: SeenPosition): void {
    if (this.#known?.run !== run || position.kind !== 'mariadb') return;
    this.#known.visible = new Map([...this.#known.visible, ...position.events]);
  }

  #wait(
    connection: Connection,
    state: ServerState,
    position: SeenPosition,
  ): Promise<PositionCheck> {
    switch (position.kind) {
      case 'mariadb':
        return state.isPrimary
          ? this.#waitForEngine(connection, state, position)
          : this.#waitForReplica(connection, state, position);
      case 'mysql': {
        const all = formatSets(uniteSets(position.executed, position.owned));
        return askToWait(connection, `SELECT WAIT_FOR_EXECUTED_GTID_SET('${all}', 1)`);
      }
      case 'galera': {
        if (connection.flavour === 'mariadb') return this.#waitForNode(connection, position);
        const gtid = `${position.cluster}:${position.committed}`;
        return askToWait(connection, `SELECT 0 * WSREP_SYNC_WAIT_UPTO_GTID('${gtid}', 1)`);
      }
      default:
        return position satisfies never;
    }
  }

  async #waitForReplica(
    connection: Connection,
    state: ServerState,
    position: Extract<SeenPosition, { kind: 'mariadb' }>,
  ): Promise<PositionCheck> {
    const events = formatEvents(position.events);
    const check = await askToWait(connection, `SELECT MASTER_GTID_WAIT('${events}', 1)`);
    if (check === 'ready') this.#noteVisible(state, position);
    return check;
  }

  /**
   * A primary of MariaDB may not show yet what is in its log (with semi-synchronous replication replicas show it earlier), and
   * MASTER_GTID_WAIT never succeeds there. It shows it three group commits later, or when nothing is committed for a moment.
   */
  async #waitForEngine(
    connection: Connection,
    state: ServerState,
    position: Extract<SeenPosition, { kind: 'mariadb' }>,
  ): Promise<PositionCheck> {
    if (this.#isVisible(state, position.events)) return 'ready';
    const until = performance.now() + maxWaitMs;
    const first = await fetchProgress(connection);
    let quietPolls = 0;
    for (let before = first; performance.now() < until; ) {
      await pause(pollMs);
      const now = await fetchProgress(connection);
      const isQuiet = now.commits === before.commits && now.waiting === 0 && before.waiting === 0;
      quietPolls = isQuiet ? quietPolls + 1 : 0;
      if (quietPolls === enoughQuiet || now.commits >= first.commits + laterCommits) {
        this.#noteVisible(state, position);
        return 'ready';
      }
      before = now;
    }
    return 'behind';
  }

  /**
   * A node of MariaDB. wsrep_sync_wait waits for all that the cluster has, for 30 s, even if the client has left. So the worker first
   * waits until the node has come as far as the client has seen.
   */
  async #waitForNode(
    connection: Connection,
    position: Extract<SeenPosition, { kind: 'galera' }>,
  ): Promise<PositionCheck> {
    const until = performance.now() + maxWaitMs;
    const query = this.queryOn(connection);
    for (let has: boolean | null = null; has !== true; ) {
      const [row] = await fetchRows(connection, query.sql);
      const found = row === undefined ? null : (query.read(row, null)?.position ?? null);
      if (found?.kind !== 'galera' || found.cluster !== position.cluster) return 'unverified';
      has = found.committed >= position.committed;
      if (!has && performance.now() >= until) return 'behind';
      if (!has) await pause(nodePollMs);
    }
    const tooLong = new Error('the node did not show in time what its cluster has');
    const timer = setTimeout(() => connection.destroy(tooLong), maxWaitMs);
    try {
      return await askToWait(connection, syncedSql);
    } finally {
      clearTimeout(timer);
    }
  }

  /** In one domain, events come in the order of their numbers. */
  #isVisible({ run }: ServerState, events: MariadbEvents): boolean {
    const known = this.#known;
    if (known?.run !== run) return false;
    return [...events].every(
      ([domain, { number }]) => (known.visible.get(domain)?.number ?? -1n) >= number,
    );
  }
}

async function fetchProgress(connection: Connection) {
  const status = new Map(
    (await fetchRows(connection, progressSql)).map(([name, value]) => [name, Number(value)]),
  );
  return {
    commits: status.get('Binlog_group_commits') ?? 0,
    waiting: status.get('Rpl_semi_sync_master_wait_sessions') ?? 0,
  };
}

/** The answer 0 means reached, and other numbers too late. A server that does not replicate, or does not know the function, refuses. */
async function askToWait(connection: Connection, sql: string): Promise<PositionCheck> {
  try {
    const [row] = await fetchRows(connection, sql);
    return row?.[0] === '0' ? 'ready' : 'behind';
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return error.errno === notReached || error.errno === notReady ? 'behind' : 'unverified';
  }
}

function describeSeen(
  { name, isPrimary }: ServerState,
  answer: PositionAnswer,
  position: SeenPosition | null,
  before: Token | null,
): TokenResult {
  const has = before === null ? true : answer.has(before.position);
  if (has === false) {
    return { token: null, missing: isPrimary ? 'lost' : 'behind', isVerified: false };
  }
  if (position === null) return unknownToken;
  const merged = before === null ? position : mergeSeen(before.position, position);
  const seen = { token: { server: name, position: merged }, missing: 'nothing' } as const;
  // Changes that the same server has shown before their commit ended may be rolled back, and it shows them as they are now.
  return has === true || (before?.server === name && position.kind === 'mysql')
    ? { ...seen, isVerified: true }
    : unverified({ ...seen, isVerified: false });
}

/** The union of both. The server of the later position has the earlier one, as far as is known. */
function mergeSeen(earlier: SeenPosition, later: SeenPosition): SeenPosition {
  if (earlier.kind === 'mariadb' && later.kind === 'mariadb') {
    return { kind: 'mariadb', events: new Map([...earlier.events, ...later.events]) };
  }
  if (earlier.kind === 'mysql' && later.kind === 'mysql') {
    const executed = uniteSets(earlier.executed, later.executed);
    // Transactions that have been executed since are listed only once: otherwise a token would grow with each reply.
    const owned = subtractSets(uniteSets(earlier.owned, later.owned), executed);
    return { kind: 'mysql', executed, owned };
  }
  if (earlier.kind === 'galera' && later.kind === 'galera') {
    const isEarlierMore = earlier.cluster === later.cluster && earlier.committed > later.committed;
    return isEarlierMore ? earlier : later;
  }
  return later;
}

/** The token of one request's client, before and now, at the server that runs its statements. */
export class RequestConsistency {
  readonly #consistency: Consistency;
  /** The client's token; null: it sends none. */
  readonly #after: Token | null;
  /** Whether the server could not say if it shows what the client has seen. */
  #isUnverified = false;
  #seen: TokenResult | null = null;

  constructor(consistency: Consistency, after: Token | null) {
    this.#consistency = consistency;
    this.#after = after;
  }

  /** The latest result; null: nothing was asked yet. */
  get seen(): TokenResult | null {
    return this.#seen;
  }

  /** Whether the client says what it has seen. */
  get hasToken(): boolean {
    return this.#after !== null;
  }

  mustWait(isRead: boolean): boolean {
    return this.#after !== null && this.#consistency.mustWait(this.#after, isRead);
  }

  async waitForPosition(session: Session): Promise<PositionCheck> {
    if (this.#after === null) return 'ready';
    const check = await this.#consistency.waitForPosition(session, this.#after);
    this.#isUnverified = check === 'unverified';
    return check;
  }

  /** The client's token before the first statement, once the session is acquired; null: it sends none. */
  get before(): TokenResult | null {
    if (this.#after === null) return null;
    const shown = this.#consistency.describeShown(this.#after);
    return this.#isUnverified ? unverified(shown) : shown;
  }

  queryOn(connection: Connection): PositionQuery {
    return this.#consistency.queryOn(connection);
  }

  /** The client's token after a statement on a session. @param row the answer to the query; null: there was none */
  see(
    session: Session,
    row: readonly (string | null)[] | null,
    isWriteAlone: boolean,
  ): TokenResult {
    const found = this.#consistency.seenOn(session, row, this.#after, isWriteAlone);
    this.#seen = this.#isUnverified ? unverified(found) : found;
    return this.#seen;
  }

  forget(session: Session): void {
    this.#consistency.forget(session);
  }

  /**
   * The same, asked on the control connection while the session's rows still arrive. Never rejects.
   * @param seesOneMoment whether all rows of the statement are of one moment: otherwise nothing bounds what it sees
   */
  async seeNow(control: Control, session: Session, seesOneMoment: boolean): Promise<TokenResult> {
    const found = await control.ask(session.identity, (connection) =>
      this.#consistency.seenNow(connection, this.#after),
    );
    if (found === null) return unknownToken;
    return seesOneMoment && !this.#isUnverified ? found : unverified(found);
  }
}
