// What the parts of a worker need of the configuration, cut to their shape.
// Must not know the parts at work.

import type { ConnectionSettings } from '../shared/mysql/open-connection.ts';
import type { Config } from '../shared/settings/config.ts';
import { scanStatements } from '../shared/sql/statements.ts';

const connectTimeoutMs = 10_000;

/** How connections to MySQL are opened. */
export function connectionSettings(config: Config, arena: Buffer): ConnectionSettings {
  return {
    host: config.host,
    port: config.port,
    socket: config.socket,
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
