// The version of the client library, as DBSlayer's clients ask for it; and version numbers as C's API has them.
// Must not know replies.
import { createRequire } from 'node:module';

const { version } = createRequire(import.meta.url)('mysql2/package.json') as { version: string };

/** The client library's version (mysql_get_client_info of the C API). */
export const clientInfo: string = version;

/**
 * A version as one number, major × 10000 + minor × 100 + patch (mysql_get_server_version of the C API).
 * MariaDB's replication prefix `5.5.5-` is no part of its version.
 */
export function versionNumber(text: string): number {
  const own = text.startsWith('5.5.5-') ? text.slice('5.5.5-'.length) : text;
  const [, major, minor, patch] = /^(\d+)\.(\d+)(?:\.(\d+))?/.exec(own) ?? [];
  return Number(major ?? 0) * 10_000 + Number(minor ?? 0) * 100 + Number(patch ?? 0);
}
