// What one server shows, held against what a client has seen: waits until it shows as much, and tells what was seen then.
// Must not know requests, nor the other servers.
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { fetchRows, RefusedError } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import { formatSets, subtractSets, uniteSets } from '../../../shared/servers/gtid-sets.ts';
import type { Position } from '../../../shared/servers/position.ts';
import type { Session } from '../pool/session.ts';
import { type Answer, type Question, questionFor } from './question.ts';
import { formatEvents, type MariadbEvents, type SeenPosition, type Token } from './token.ts';

/** What is known of the server now. */
export type ServerPart = {
  /** Its name for itself. */
  readonly name: string;
  /** Tells one run of it from another: in a crash it may have lost something. */
  readonly run: string;
  /** Whether it takes writes: what is to be seen there is there, or never will be. */
  readonly isPrimary: boolean;
  /** A node of a Galera cluster. */
  readonly isNode: boolean;
  /** How far its history went when it was looked at last; null: it has none, or does not tell. */
  readonly position: Position | null;
};

/**
 * Whether a server shows what a client has seen. `behind`: not within a second, another one may. `lost`: it is there no more, provably.
 * `unverified`: it cannot be told.
 */
export type Arrival = 'ready' | 'behind' | 'lost' | 'unverified';

/** What a client has seen after a statement, at most. */
export type Seen = {
  /** Null: that cannot be told. */
  readonly token: Token | null;
  /**
   * Whether something of what it had seen before is missing here. `behind`: a replica may still get it; `lost`: whoever takes writes does not
   * have it, provably.
   */
  readonly missing: 'nothing' | 'behind' | 'lost';
  /** Whether it is certain that the statement saw at least what its client had seen, and the token bounds what it saw. */
  readonly isVerified: boolean;
};

/** What was seen cannot be told. */
export const nothingSeen: Seen = { token: null, missing: 'nothing', isVerified: false };

/** The same, where the server could not tell whether it shows what the client had seen: another time none is believed to show both. */
export function unverified(seen: Seen): Seen {
  const { token } = seen;
  return { ...seen, token: token === null ? null : { ...token, server: '' }, isVerified: false };
}

const mostWaitMs = 1_000;
const pollMs = 1;
/** The question costs a node more than a primary's. */
const nodePollMs = 5;
/** Group commits after which the storage engine shows what was in the log before them. */
const laterCommits = 3;
/** Polls, one after the other, between which nobody committed. */
const enoughQuiet = 2;
/** ER_LOCK_WAIT_TIMEOUT: Galera's word for a position that was not reached in time. */
const notReached = 1205;
/** ER_UNKNOWN_COM_ERROR: the node has left its cluster, or does not take part yet. */
const notReady = 1047;
const syncedSql = 'SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 0';
const progressSql =
  "SHOW GLOBAL STATUS WHERE Variable_name IN ('Binlog_group_commits', 'Rpl_semi_sync_master_wait_sessions')";

/** One server's consistency, as one worker knows it. */
export class Consistency {
  readonly #part: () => ServerPart | null;
  /** The latest word on what one run of the server has, and what of it is shown for certain: the log may be ahead of the engine. */
  #known: { readonly run: string; readonly answer: Answer; visible: MariadbEvents } | null = null;
  readonly #last = new WeakMap<Session, Answer>();

  /** @param part what the server is now; null: that is not known */
  constructor(part: () => ServerPart | null) {
    this.#part = part;
  }

  /** What is to be asked in the same write as a statement, behind it. */
  questionOn(connection: Connection): Question {
    return questionFor(connection, this.#part()?.isNode === true);
  }

  /** Whether something must be waited for, or asked, before a statement runs there. */
  needsArrival({ server, position }: Token, isRead: boolean): boolean {
    const part = this.#part();
    if (part === null) return true;
    if (part.name !== server) return !isRead || !this.#isKnownToShow(part, position);
    // The same server shows what it showed. Whether it has lost it is told behind a read, and must be known before a write.
    return !isRead && !this.#isKnownToHave(part, position);
  }

  /**
   * Waits until the session's server shows what the client has seen, a second at most. Outside of any transaction. Rejects when the
   * connection is lost.
   */
  async arrive({ connection }: Session, { server, position }: Token): Promise<Arrival> {
    const part = this.#part();
    if (part === null) return 'behind';
    const isSame = part.name === server;
    if ((isSame || part.isPrimary) && !this.#isKnownToHave(part, position)) {
      const answer = await this.#ask(connection, part);
      const has = answer?.has(position) ?? null;
      if (has === false) return 'lost';
      if (has === null && position.kind === 'mariadb') return 'unverified';
    }
    if (isSame) return 'ready';
    const arrival = await this.#wait(connection, part, position);
    return arrival === 'behind' && part.isPrimary ? 'unverified' : arrival;
  }

  /** What a client has seen after a statement on a session. @param row the answer to the question; null: there was none */
  seenOn(
    session: Session,
    row: readonly (string | null)[] | null,
    before: Token | null,
    isWriteAlone: boolean,
  ): Seen {
    const part = this.#part();
    const last = this.#last.get(session) ?? null;
    const { connection } = session;
    const answer = row === null ? null : this.questionOn(connection).read(row, last);
    this.#last.delete(session);
    if (part === null || answer === null) return nothingSeen;
    this.#last.set(session, answer);
    this.#note(part, answer);
    if (last !== null && answer.ownWrite !== null) this.#noteVisible(part, answer.ownWrite);
    const own = isWriteAlone && last !== null ? answer.ownWrite : null;
    return describeSeen(part, answer, own ?? answer.position, before);
  }

  /** What the session does now is nobody's any more: a later write is not to be taken for another one. */
  forget(session: Session): void {
    this.#last.delete(session);
  }

  /** The same, asked on a connection beside it while the statement's rows are under way: its snapshot is older. */
  async seenNow(connection: Connection, before: Token | null): Promise<Seen> {
    const part = this.#part();
    const answer = part === null ? null : await this.#ask(connection, part);
    if (part === null || answer === null) return nothingSeen;
    return describeSeen(part, answer, answer.position, before);
  }

  #isKnownToHave({ run }: ServerPart, position: SeenPosition): boolean {
    return this.#known?.run === run && this.#known.answer.has(position) === true;
  }

  /** A replica that was waited for once: what it showed then it shows now. A primary may have something in its log that it does not show yet. */
  #isKnownToShow(part: ServerPart, position: SeenPosition): boolean {
    if (part.isPrimary || !this.#isKnownToHave(part, position)) return false;
    return (
      position.kind === 'mysql' ||
      (position.kind === 'mariadb' && this.#isVisible(part, position.events))
    );
  }

  async #ask(connection: Connection, part: ServerPart): Promise<Answer | null> {
    const question = this.questionOn(connection);
    const [row] = await fetchRows(connection, question.sql);
    const answer = row === undefined ? null : question.read(row, null);
    if (answer !== null) this.#note(part, answer);
    return answer;
  }

  #note({ run }: ServerPart, answer: Answer): void {
    const visible = this.#known?.run === run ? this.#known.visible : new Map();
    this.#known = { run, answer, visible };
  }

  #noteVisible({ run }: ServerPart, position: SeenPosition): void {
    if (this.#known?.run !== run || position.kind !== 'mariadb') return;
    this.#known.visible = new Map([...this.#known.visible, ...position.events]);
  }

  #wait(connection: Connection, part: ServerPart, position: SeenPosition): Promise<Arrival> {
    switch (position.kind) {
      case 'mariadb':
        return part.isPrimary
          ? this.#waitForEngine(connection, part, position)
          : this.#waitForReplica(connection, part, position);
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
    part: ServerPart,
    position: Extract<SeenPosition, { kind: 'mariadb' }>,
  ): Promise<Arrival> {
    const events = formatEvents(position.events);
    const arrival = await askToWait(connection, `SELECT MASTER_GTID_WAIT('${events}', 1)`);
    if (arrival === 'ready') this.#noteVisible(part, position);
    return arrival;
  }

  /**
   * A primary of MariaDB: what is in its log may not be shown yet (with semi-synchronous replication replicas show it earlier), and
   * MASTER_GTID_WAIT never succeeds there. Shown it is three group commits later, or when nobody commits.
   */
  async #waitForEngine(
    connection: Connection,
    part: ServerPart,
    position: Extract<SeenPosition, { kind: 'mariadb' }>,
  ): Promise<Arrival> {
    if (this.#isVisible(part, position.events)) return 'ready';
    const until = performance.now() + mostWaitMs;
    const first = await fetchProgress(connection);
    let quietPolls = 0;
    for (let before = first; performance.now() < until; ) {
      await pause(pollMs);
      const now = await fetchProgress(connection);
      const isQuiet = now.commits === before.commits && now.waiting === 0 && before.waiting === 0;
      quietPolls = isQuiet ? quietPolls + 1 : 0;
      if (quietPolls === enoughQuiet || now.commits >= first.commits + laterCommits) {
        this.#noteVisible(part, position);
        return 'ready';
      }
      before = now;
    }
    return 'behind';
  }

  /**
   * A node of MariaDB. wsrep_sync_wait waits for all that the cluster has, for 30 s, even if the client has left. So the node is first
   * given time to come as far as the client has seen.
   */
  async #waitForNode(
    connection: Connection,
    position: Extract<SeenPosition, { kind: 'galera' }>,
  ): Promise<Arrival> {
    const until = performance.now() + mostWaitMs;
    const question = this.questionOn(connection);
    for (let has: boolean | null = null; has !== true; ) {
      const [row] = await fetchRows(connection, question.sql);
      const found = row === undefined ? null : (question.read(row, null)?.position ?? null);
      if (found?.kind !== 'galera' || found.cluster !== position.cluster) return 'unverified';
      has = found.committed >= position.committed;
      if (!has && performance.now() >= until) return 'behind';
      if (!has) await pause(nodePollMs);
    }
    const tooLong = new Error('the node did not show in time what its cluster has');
    const timer = setTimeout(() => connection.destroy(tooLong), mostWaitMs);
    try {
      return await askToWait(connection, syncedSql);
    } finally {
      clearTimeout(timer);
    }
  }

  /** In one domain what has a lower number was there before. */
  #isVisible({ run }: ServerPart, events: MariadbEvents): boolean {
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

/** 0: reached. Other numbers: not in time; a server that does not replicate, or does not know the function, refuses. */
async function askToWait(connection: Connection, sql: string): Promise<Arrival> {
  try {
    const [row] = await fetchRows(connection, sql);
    return row?.[0] === '0' ? 'ready' : 'behind';
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return error.errno === notReached || error.errno === notReady ? 'behind' : 'unverified';
  }
}

function describeSeen(
  { name, isPrimary }: ServerPart,
  answer: Answer,
  position: SeenPosition | null,
  before: Token | null,
): Seen {
  const has = before === null ? true : answer.has(before.position);
  if (has === false) {
    return { token: null, missing: isPrimary ? 'lost' : 'behind', isVerified: false };
  }
  if (position === null) return nothingSeen;
  const merged = before === null ? position : mergeSeen(before.position, position);
  const seen = { token: { server: name, position: merged }, missing: 'nothing' } as const;
  // What is still on its way at the server that has shown it may come to nothing, and is shown there as it was.
  return has === true || (before?.server === name && position.kind === 'mysql')
    ? { ...seen, isVerified: true }
    : unverified({ ...seen, isVerified: false });
}

/** Both; the later one is of a server that has the earlier, as far as is known. */
function mergeSeen(earlier: SeenPosition, later: SeenPosition): SeenPosition {
  if (earlier.kind === 'mariadb' && later.kind === 'mariadb') {
    return { kind: 'mariadb', events: new Map([...earlier.events, ...later.events]) };
  }
  if (earlier.kind === 'mysql' && later.kind === 'mysql') {
    const executed = uniteSets(earlier.executed, later.executed);
    // What was on its way and has been executed since is told once: else a token would grow with each reply.
    const owned = subtractSets(uniteSets(earlier.owned, later.owned), executed);
    return { kind: 'mysql', executed, owned };
  }
  if (earlier.kind === 'galera' && later.kind === 'galera') {
    const isEarlierMore = earlier.cluster === later.cluster && earlier.committed > later.committed;
    return isEarlierMore ? earlier : later;
  }
  return later;
}
