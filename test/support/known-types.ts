// The column types that the server of a test knows.
import type { TestContext } from 'node:test';
import type { Connection } from 'mysql2/promise';
import { columnCases, newTypes } from './column-cases.ts';
import type { TypeCase } from './column-truth.ts';
import type { Database } from './database/mariadb.ts';

/** Types that all versions of its flavour know. */
export function typesOf({ flavour }: Database): readonly TypeCase[] {
  return columnCases.filter(({ on }) => on === undefined || on === flavour);
}

/** Types of later versions that the server knows as well. The test prints which are left out. */
export async function newTypesOf(
  { flavour, version }: Database,
  connection: Connection,
  t: TestContext,
): Promise<readonly TypeCase[]> {
  const found: TypeCase[] = [];
  for (const one of newTypes.filter(({ on }) => on === undefined || on === flavour)) {
    const isKnown = await connection
      .query(`create temporary table probe (v ${one.type}); drop temporary table probe`)
      .then(() => true)
      .catch(() => false);
    if (isKnown) found.push(one);
    else t.diagnostic(`left out: ${version} has no ${one.type}`);
  }
  return found;
}
