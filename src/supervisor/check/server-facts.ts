// Short connections to one MySQL server: what kind it is, how many connections it admits, what its table of keys is like.
// Must not know what is done with the answer; for --check alone.

import type { Candidate } from '../../shared/config/addresses.ts';
import type { Config } from '../../shared/config/config.ts';
import { connectionSettings, initStatements } from '../../shared/connection-settings.ts';
import type { LedgerTable } from '../../shared/idempotency-table.ts';
import { fetchRows, RefusedError } from '../../shared/mysql/commands.ts';
import { type ConnectFailure, describeConnectFailure } from '../../shared/mysql/connect-failure.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { leastArenaBytes, openConnection } from '../../shared/mysql/open-connection.ts';
import { askView, prepareQuestions } from '../../shared/servers/ask-view.ts';
import type { ServerView } from '../../shared/servers/server-view.ts';
import { findBlindSpots, type Sight } from './blind-spots.ts';
import { findExcessGrants } from './excess-grants.ts';
import { fetchLedgerFacts, type LedgerFacts } from './ledger-facts.ts';
import type { Part } from './role-spots.ts';

/** What a server says of itself. */
export type ServerFacts = {
  readonly flavour: 'MySQL' | 'MariaDB';
  readonly version: string;
  readonly maxConnections: number;
  /** The most that the account may have at a time; null: it has no limit of its own. */
  readonly maxUserConnections: number | null;
  /** Whether the login works only while the server remembers the password. */
  readonly isRemembered: boolean;
  /** Why `init_sql` was refused; null when it was not, or there is none. */
  readonly initSqlProblem: string | null;
  /** Grants whose lack keeps `session_reset = auto` from knowing views and triggers, as warnings; none under `always`. */
  readonly blindSpots: readonly string[];
  /** Rights that read-only requests are not safe from, as warnings. */
  readonly excessGrants: readonly string[];
  /** As its global variable says it: whether it takes writes is more than that. */
  readonly isReadOnly: boolean;
  /** What it says of its part among several; null: its section has no other. */
  readonly part: Part | null;
};

/** What the server said, or why it could not be asked. */
export type Asked<T> = { readonly ok: true; readonly facts: T } | Unanswered;

/** Why the server could not be asked. */
export type Unanswered = { readonly ok: false; readonly failure: ConnectFailure };

/** For the connection, and for all questions together. */
const boundMs = 5000;
const tooLate = Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' });

/** What kind of server it is; see `ask`. */
export function askServer(config: Config, candidate: Candidate): Promise<Asked<ServerFacts>> {
  return ask(config, candidate, (connection) => fetchFacts(connection, config));
}

/** One more look at a server: two of them are not seen at one moment, and are compared by what each had before; see `ask`. */
export function askViewAgain(config: Config, candidate: Candidate): Promise<Asked<ServerView>> {
  return ask(config, candidate, async (connection) =>
    askView(connection, await prepareQuestions(connection)),
  );
}

/** What a server's table of idempotency keys is like; see `ask`. */
export function askLedger(
  config: Config,
  candidate: Candidate,
  ledger: LedgerTable,
): Promise<Asked<LedgerFacts>> {
  return ask(config, candidate, async (connection) => {
    // init_sql may choose the role that has the rights; whether it is refused has been told.
    await tryOut(connection, initStatements(config));
    return fetchLedgerFacts(connection, ledger, config.idempotencyKeepMs);
  });
}

/** Connects as a worker does, asks, and leaves; within 10 s. The reason never holds the password. */
async function ask<T>(
  config: Config,
  candidate: Candidate,
  fetch: (connection: Connection) => Promise<T>,
): Promise<Asked<T>> {
  try {
    const arena = Buffer.allocUnsafeSlow(leastArenaBytes);
    const settings = connectionSettings(config, candidate, arena);
    const connection = await openConnection(settings, AbortSignal.timeout(boundMs));
    const timer = setTimeout(() => connection.destroy(tooLate), boundMs);
    try {
      return { ok: true, facts: await fetch(connection) };
    } finally {
      clearTimeout(timer);
      connection.destroy(new Error('all has been asked'));
    }
  } catch (error) {
    return { ok: false, failure: describeConnectFailure(error) };
  }
}

const factsQuery =
  'select version(), @@max_connections, @@session.max_user_connections, @@global.read_only';

async function fetchFacts(connection: Connection, config: Config): Promise<ServerFacts> {
  const [row = []] = await fetchRows(connection, factsQuery);
  const [version, maxConnections, maxUserConnections, readOnly] = row;
  const sight = await fetchSight(connection, config.database);
  return {
    flavour: connection.flavour === 'mariadb' ? 'MariaDB' : 'MySQL',
    version: version ?? '',
    maxConnections: Number(maxConnections),
    // 0 means none, and is what MariaDB and MySQL say where neither account nor server has one.
    maxUserConnections: Number(maxUserConnections) || null,
    isRemembered: connection.isRemembered,
    initSqlProblem: await tryOut(connection, initStatements(config)),
    blindSpots: sight === null || config.sessionReset === 'always' ? [] : findBlindSpots(sight),
    excessGrants: findExcessGrants(sight?.grants ?? []),
    isReadOnly: readOnly === '1',
    part: config.candidates.length === 1 ? null : await fetchPart(connection, sight),
  };
}

async function fetchPart(connection: Connection, sight: Sight | null): Promise<Part> {
  const questions = await prepareQuestions(connection);
  const view = await askView(connection, questions);
  return { view, questions, account: sight?.account ?? null, grants: sight?.grants ?? [] };
}

const hiddenViewsQuery = `
  select table_name from information_schema.views
   where table_schema = database() and (view_definition is null or view_definition = '')`;

async function fetchSight(connection: Connection, database: string): Promise<Sight | null> {
  try {
    const [[account] = []] = await fetchRows(connection, 'select current_user()');
    const grants = await fetchRows(connection, 'show grants');
    const views = await fetchRows(connection, hiddenViewsQuery);
    return {
      database,
      account: account ?? '',
      grants: grants.map(([grant]) => grant ?? ''),
      hiddenViews: views.map(([name]) => name ?? ''),
    };
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    // A server that answers everything else is no fault because of this.
    return null;
  }
}

/** Why the operator's statements were refused; null: they were not. */
async function tryOut(
  connection: Connection,
  statements: readonly string[],
): Promise<string | null> {
  try {
    for (const sql of statements) await fetchRows(connection, sql);
    return null;
  } catch (error) {
    return error instanceof RefusedError
      ? `${error.message} (${error.errno})`
      : 'the connection was lost';
  }
}
