// What the parts of a worker need of the configuration, read and cut to their shape.
// Must not know the parts at work.
import { readFileSync } from 'node:fs';
import type { Config } from '../shared/config.ts';
import type { ConnectionSettings } from './mysql/open-connection.ts';
import { scanStatements } from './sql/statements.ts';

const connectTimeoutMs = 10_000;

/** How connections to MySQL are opened. Reads the files of keys. @throws when one cannot be read */
export function connectionSettings(config: Config, arena: Buffer): ConnectionSettings {
  const read = (path: string | null) => (path === null ? null : readFileSync(path, 'utf8'));
  return {
    host: config.host,
    port: config.port,
    socket: config.socket,
    user: config.user,
    password: config.password,
    database: config.database,
    multiStatements: config.multiStatements,
    tls:
      config.tls === 'off'
        ? null
        : {
            verify: config.tls === 'verify',
            ca: read(config.tlsCa),
            cert: read(config.tlsCert),
            key: read(config.tlsKey),
          },
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

/** The PEM texts for HTTPS; null without. @throws when a file cannot be read */
export function readTls(
  cert: string | null,
  key: string | null,
): { cert: string; key: string } | null {
  if (cert === null || key === null) return null;
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}
