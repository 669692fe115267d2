// The servers that take query attributes, by name and version.
import type { Database } from './mariadb.ts';

/** Tells whether the server takes them: MySQL 8.0.23 and later. */
export function takesAttributes({ flavour, version }: Database): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  return flavour === 'mysql' && major * 1e6 + minor * 1e3 + patch >= 8_000_023;
}
