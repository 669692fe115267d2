// One server of a section as a worker uses it: its pool, control connection, readiness probe and catalogue.
import { constants } from 'node:buffer';
import { type Candidate, formatCandidate } from '../../shared/config/addresses.ts';
import type { Config } from '../../shared/config/config.ts';
import type { Credentials } from '../../shared/config/credentials.ts';
import { connectionSettings, initStatements } from '../../shared/database/connection-settings.ts';
import { type Indexed, IndexedSet } from '../../shared/indexed-set.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { waysToSendPassword } from '../../shared/mysql/handshake.ts';
import type { ServerIdentity } from '../../shared/mysql/identity.ts';
import { type ConnectionSettings, openConnection } from '../../shared/mysql/open-connection.ts';
import type { Log } from '../../shared/process/log.ts';
import { Catalogue } from './catalogue/catalogue.ts';
import { Consistency, type ServerState } from './consistency/consistency.ts';
import type { Queued } from './pool/client-line.ts';
import { prepare } from './pool/connecting.ts';
import { Control, type ControlObservations } from './pool/control.ts';
import { Pool, type PoolObservations } from './pool/pool.ts';
import { Reachability } from './pool/reachability.ts';
import { Readiness } from './pool/readiness.ts';
import { ReservedSessions } from './pool/reserved-sessions.ts';
import { fetchCommandLimit, maxTextBytes, prepareSession, type Session } from './pool/session.ts';

/** The parts that a server gets from its worker. */
export type ServerSurroundings = {
  /** The buffer that all connections of the process read into. */
  readonly arena: Buffer;
  /** Informs the other workers that tables may have changed. */
  readonly reportTablesChanged: () => void;
  readonly log: Log;
};

/** The knowledge about a server that is one of several. */
export type Membership = {
  /** Whether a new session is to the server that was probed: a name may lead to another one by now. If not, the server is probed again. */
  readonly confirms: (identity: ServerIdentity) => boolean;
  /** Whether an open session is to the server that was probed. */
  readonly isKnown: (identity: ServerIdentity) => boolean;
  /** Null: it was never reached. */
  readonly state: () => ServerState | null;
};

/** A request that runs on a server, or waits for one. */
export interface Routed extends Indexed {
  /** Whether it was declared so. */
  readonly isReadOnly: boolean;
  /** Roles may have changed: there may be a server for it now. */
  reconsider(): void;
  /** The server that it runs on must not be used any more. */
  leaveServer(): void;
}

/** A request that waits for a server. */
export interface WaitingForServer extends Routed, Queued {
  /** The place in which it waits belongs to another request. */
  losePlace(): void;
}

/** The present state of a server in a worker, and its counts so far. */
export type ServerObservations = {
  readonly address: string;
  readonly pool: PoolObservations;
  /** Sessions that are reserved over several requests. */
  readonly reserved: number;
  readonly control: ControlObservations;
  /** MySQL's number for why no connection can be opened now; null: one can be, or the server gave no number. */
  readonly connectErrno: number | null;
};

/** With MariaDB's default of max_allowed_packet; MySQL's is four times that. */
const usualTextBytes = maxTextBytes(16 * 1024 * 1024, { hasQueryAttributes: true });

/** A server. Its owner starts it, and must close it. */
export class Server {
  /** Its name in logs and metrics. */
  readonly address: string;
  readonly pool: Pool;
  readonly reserved: ReservedSessions;
  /** The requests that run on it, or wait in its queue, if it is one of several servers. */
  readonly running = new IndexedSet<Routed>();
  readonly control: Control;
  readonly catalogue: Catalogue;
  readonly readiness: Readiness;
  /** Null: it is the only server, which always shows what it showed. */
  readonly consistency: Consistency | null;
  readonly #config: Config;
  readonly #candidate: Candidate;
  readonly #membership: Membership | null;
  readonly #arena: Buffer;
  readonly #reachability: Reachability;
  #maxTextBytes = usualTextBytes;
  readonly #log: Log;
  #isWarned = false;
  #settings: ConnectionSettings;

  /** @param membership null: it is the only server, and any server that is reached is the right one */
  constructor(
    config: Config,
    candidate: Candidate,
    { arena, reportTablesChanged, log }: ServerSurroundings,
    membership: Membership | null,
  ) {
    this.#config = config;
    this.#candidate = candidate;
    this.#membership = membership;
    this.consistency = membership === null ? null : new Consistency(membership.state);
    this.#arena = arena;
    this.#log = log;
    this.#settings = connectionSettings(config, this.#candidate, arena);
    this.address = formatCandidate(this.#candidate);
    this.#reachability = new Reachability(log, { address: this.address, account: config.user });
    this.pool = new Pool(
      {
        size: config.pool,
        queue: config.queue,
        maxWaitMs: config.maxWaitMs,
        open: (signal) => this.#openSession(signal),
        onOpened: (session) => this.catalogue.sessionOpened(session),
        mayLend: membership === null ? null : ({ identity }) => membership.isKnown(identity),
        log,
      },
      this.#reachability,
    );
    this.reserved = new ReservedSessions(this.pool);
    this.catalogue = new Catalogue(this.pool, reportTablesChanged, log);
    this.control = new Control((signal) => this.#openControl(signal), this.#reachability, log);
    this.readiness = new Readiness(
      (signal) => this.connect(signal),
      this.pool,
      () => this.#reachability.reached(),
      log,
    );
  }

  start(): void {
    this.catalogue.start();
    this.control.start();
  }

  /** The longest statement that the server takes, with its parameters, in bytes, as the server reported it to the latest connection. */
  get maxStatementBytes(): number {
    return Math.min(this.#maxTextBytes, constants.MAX_STRING_LENGTH);
  }

  /** Opens a connection for the caller. */
  connect(signal: AbortSignal): Promise<Connection> {
    return openConnection(this.#settings, signal);
  }

  observations(): ServerObservations {
    return {
      address: this.address,
      pool: this.pool.observations(),
      reserved: this.reserved.count,
      control: this.control.observations,
      connectErrno: this.#reachability.errno,
    };
  }

  /** Must be called when it answers again after an outage: connections that are being opened are opened again. */
  returned(): void {
    this.#reachability.returned();
  }

  /** From now on connections are opened with these. */
  renew(credentials: Credentials): void {
    const config = { ...this.#config, ...credentials };
    this.#settings = connectionSettings(config, this.#candidate, this.#arena);
    this.#reachability.reached();
  }

  /** From now on idle connections are closed, because a successor opens its own. */
  keepNothingIdle(): void {
    this.reserved.close();
    this.readiness.close();
    this.pool.keepNoneIdle();
  }

  /** Closes idle connections, and resolves when none is open any more. */
  async close(): Promise<void> {
    // The pool first: from then on, the end of the catalogue's own reading is no loss of a connection.
    const closed = this.pool.close();
    this.catalogue.close();
    await closed;
    this.control.close();
    this.#reachability.close();
  }

  async #openSession(signal: AbortSignal): Promise<Session> {
    const { database, maxColumns } = this.#config;
    const settings = { database, initStatements: initStatements(this.#config) };
    const session = await prepareSession(await this.connect(signal), settings, signal);
    session.connection.columns.maxColumns = maxColumns;
    if (this.#membership?.confirms(session.identity) === false) {
      const error = new Error('its name leads to another server than the one that was probed');
      session.connection.destroy(error);
      throw error;
    }
    this.#maxTextBytes = session.maxTextBytes;
    return session;
  }

  /** The control connection is opened before any session, so that the first request knows the limit. */
  async #openControl(signal: AbortSignal) {
    const connection = await this.connect(signal);
    const limitBytes = await prepare(connection, signal, () => fetchCommandLimit(connection));
    this.#maxTextBytes = maxTextBytes(limitBytes, connection);
    if (connection.isRemembered) this.#warnOfRememberedLogin();
    return connection;
  }

  /** Logs once that the next login may fail. */
  #warnOfRememberedLogin(): void {
    if (this.#isWarned) return;
    this.#isWarned = true;
    this.#log.warn('the login works only while the server remembers the password', {
      address: this.address,
      account: this.#config.user,
      remedy: waysToSendPassword,
    });
  }
}
