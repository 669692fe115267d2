// What a connection to MySQL needs of the configuration, for the worker and for --check alike.
// Must not know what the connection is for.
import type { ConnectionSettings } from './mysql/open-connection.ts';
import type { Candidate } from './settings/candidates.ts';
import type { Config } from './settings/config.ts';
import { scanStatements } from './sql/statements.ts';

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
    multiStatements: config.multiStatements,
    tls: config.tls === 'off' ? null : { verify: config.tls === 'verify', ...config.tlsTexts },
    connectTimeoutMs,
    arena,
  };
}

/** The operator's statements, one each. */
export function initStatements(config: Config): readonly string[] {
  const { initSql } = config;
  if (initSql === null) return [];
  return scanStatements(initSql).map(({ start, end }) => initSql.slice(start, end));
}
