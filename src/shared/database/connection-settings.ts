// The settings of a connection to MySQL, from the configuration, for the worker and for --check.

import type { Candidate } from '../config/addresses.ts';
import type { Config } from '../config/config.ts';
import type { ConnectionSettings } from '../mysql/open-connection.ts';
import { analyse } from '../sql/analyse.ts';

const connectTimeoutMs = 10_000;

/** How connections to one of a section's servers are opened. */
export function connectionSettings(
  config: Config,
  { host, port, socket }: Candidate,
  arena: Buffer,
): ConnectionSettings {
  return {
    host,
    port,
    socket,
    user: config.user,
    password: config.password,
    database: config.database,
    tls: config.tls === 'off' ? null : { verify: config.tls === 'verify', ...config.tlsTexts },
    serverKeys: config.serverKeys,
    connectTimeoutMs,
    arena,
  };
}

/** The operator's statements (init_sql), one each, then those that every session needs in any case, then those that `drivers` needs. */
export function initStatements({ initSql, drivers }: Config): readonly string[] {
  const own =
    initSql === null
      ? []
      : analyse(initSql).statements.map(({ start, end }) => initSql.slice(start, end));
  return [
    ...own,
    ...(own.length === 0 ? [] : [writesCommit]),
    ...(drivers === 'off' ? [] : [backslashesEscape]),
  ];
}

/** Overrides init_sql: without autocommit the next reset would undo a write that was answered as done. */
const writesCommit = 'SET autocommit=1, completion_type=0';

/**
 * A driver escapes the values in its text by backslashes, as UTF-8. The server's global sql_mode, init_connect or init_sql may contradict
 * that, so this statement comes last. Other modes, and a collation of utf8mb4, remain.
 */
const backslashesEscape =
  'SET character_set_client = utf8mb4, character_set_results = utf8mb4, ' +
  "collation_connection = IF(@@character_set_connection = 'utf8mb4', @@collation_connection, 'utf8mb4_general_ci'), " +
  "sql_mode = TRIM(BOTH ',' FROM REPLACE(CONCAT(',', @@sql_mode, ','), ',NO_BACKSLASH_ESCAPES,', ','))";
