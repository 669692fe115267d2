// One server of a section as a worker uses it: its pool, control connection, readiness probe and catalogue.
import { constants } from 'node:buffer';
import { performance } from 'node:perf_hooks';
import { type Candidate, formatCandidate } from '../../shared/config/addresses.ts';
import type { Config } from '../../shared/config/config.ts';
import type { Credentials } from '../../shared/config/credentials.ts';
import { connectionSettings, initStatements } from '../../shared/connection-settings.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { waysToSendPassword } from '../../shared/mysql/handshake.ts';
import type { ServerIdentity } from '../../shared/mysql/identity.ts';
import { type ConnectionSettings, openConnection } from '../../shared/mysql/open-connection.ts';
import type { Log } from '../../shared/process/log.ts';
import { Catalogue } from './catalogue/catalogue.ts';
import { Consistency, type ServerState } from './consistency/consistency.ts';
import { prepare } from './pool/connecting.ts';
import { Control, type ControlObservations } from './pool/control.ts';
import { DrainRate } from './pool/drain-rate.ts';
import { Pool, type PoolObservations } from './pool/pool.ts';
import { Reachability } from './pool/reachability.ts';
import { Readiness } from './pool/readiness.ts';
import { ReservedSessions } from './pool/reserved-sessions.ts';
import { fetchCommandLimit, maxTextBytes, prepareSession, type Session } from './pool/session.ts';

/** What a server needs of its worker. */
export type ServerSurroundings = {
  /** Where all connections of the process read into. */
  readonly arena: Buffer;
  /** Tells the other workers that tables may have changed. */
  readonly tellTablesChanged: () => void;
  readonly log: Log;
};

/** Whether a server that was reached is the one that is meant: a name may lead to another one meanwhile. */
export type Accepts = {
  /** Asked of a session that has just been opened. */
  readonly opened: (identity: ServerIdentity) => boolean;
  /** Asked of a session before it is lent once more. */
  readonly kept: (identity: ServerIdentity) => boolean;
};

/** What is known of a server as one of several. */
export type Among = {
  readonly accepts: Accepts;
  /** What it is now; null: that is not known. */
  readonly state: () => ServerState | null;
};

/** What a worker holds of a server now, and what it has done so far. */
export type ServerObservations = {
  readonly address: string;
  readonly pool: PoolObservations;
  /** Sessions that are reserved over several requests. */
  readonly reserved: number;
  readonly control: ControlObservations;
};

/** With MariaDB's default of max_allowed_packet; MySQL's is four times that. */
const usualTextBytes = maxTextBytes(16 * 1024 * 1024, { hasQueryAttributes: true });

/** A server. Its owner starts it, and must close it. */
export class Server {
  /** Its name in logs and metrics. */
  readonly address: string;
  readonly pool: Pool;
  readonly reserved: ReservedSessions;
  readonly control: Control;
  readonly catalogue: Catalogue;
  readonly readiness: Readiness;
  /** Null: it is alone, and always shows what it showed. */
  readonly consistency: Consistency | null;
  readonly #config: Config;
  readonly #candidate: Candidate;
  readonly #accepts: Accepts | null;
  readonly #arena: Buffer;
  readonly #reachability: Reachability;
  #maxTextBytes = usualTextBytes;
  readonly #log: Log;
  #isWarned = false;
  readonly #drainRate = new DrainRate(performance.now());
  #settings: ConnectionSettings;

  /** @param among what is known of it as one of several; null: it is alone, and whatever is reached is meant */
  constructor(
    config: Config,
    candidate: Candidate,
    { arena, tellTablesChanged, log }: ServerSurroundings,
    among: Among | null,
  ) {
    this.#config = config;
    this.#candidate = candidate;
    this.#accepts = among?.accepts ?? null;
    this.consistency = among === null ? null : new Consistency(among.state);
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
        mayLend: among === null ? null : ({ identity }) => among.accepts.kept(identity),
        onRelease: () => this.#drainRate.note(performance.now()),
        log,
      },
      this.#reachability,
    );
    this.reserved = new ReservedSessions(this.pool);
    this.catalogue = new Catalogue(this.pool, tellTablesChanged, log);
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

  /** The longest statement that the server takes, with its parameters, in bytes: as the latest connection was told. */
  get maxStatementBytes(): number {
    return Math.min(this.#maxTextBytes, constants.MAX_STRING_LENGTH);
  }

  /** When those who wait for a session will have had one. */
  get retryAfterSeconds(): number {
    return this.#drainRate.retryAfterSeconds(this.pool.queue.length, performance.now());
  }

  /** Opens a connection of the caller's own. */
  connect(signal: AbortSignal): Promise<Connection> {
    return openConnection(this.#settings, signal);
  }

  observations(): ServerObservations {
    return {
      address: this.address,
      pool: this.pool.observations(),
      reserved: this.reserved.count,
      control: this.control.observations,
    };
  }

  /** Connections are opened with these from now on. */
  renew(credentials: Credentials): void {
    const config = { ...this.#config, ...credentials };
    this.#settings = connectionSettings(config, this.#candidate, this.#arena);
    this.#reachability.reached();
  }

  /** From now on nothing is kept open that nobody uses: a successor opens connections of its own. */
  keepNothingIdle(): void {
    this.reserved.close();
    this.readiness.close();
    this.pool.keepNoneIdle();
  }

  /** Closes what is idle, and resolves when nothing is open any more. */
  async close(): Promise<void> {
    this.catalogue.close();
    await this.pool.close();
    this.control.close();
    this.#reachability.close();
  }

  async #openSession(signal: AbortSignal): Promise<Session> {
    const { database, maxColumns } = this.#config;
    const settings = { database, initStatements: initStatements(this.#config) };
    const session = await prepareSession(await this.connect(signal), settings, signal);
    session.connection.columns.maxColumns = maxColumns;
    if (this.#accepts?.opened(session.identity) === false) {
      const error = new Error('its name leads to another server than was looked at');
      session.connection.destroy(error);
      throw error;
    }
    this.#maxTextBytes = session.maxTextBytes;
    return session;
  }

  /** Opened before any session is wanted: the limit is known to the first request. */
  async #openControl(signal: AbortSignal) {
    const connection = await this.connect(signal);
    const limitBytes = await prepare(connection, signal, () => fetchCommandLimit(connection));
    this.#maxTextBytes = maxTextBytes(limitBytes, connection);
    if (connection.isRemembered) this.#warnOfRememberedLogin();
    return connection;
  }

  /** Logged once: the next login may fail. */
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
