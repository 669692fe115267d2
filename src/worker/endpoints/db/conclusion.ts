// What follows a request's statements on their connection, and which of them its results belong to.
// Must not know HTTP, nor how the document is written.

import { runTogether, statementCommand } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import type { ServerError } from '../../../shared/mysql/packets.ts';
import type { Config } from '../../../shared/settings/config.ts';
import { type Applied, rollbackUndoesAll } from '../../../shared/sql/rollback.ts';
import { createResultMap, scanStatements } from '../../../shared/sql/statements.ts';
import type { DbEnding, ResultNote } from '../../reply/formats/db.ts';
import { fetchMetadata } from './metadata.ts';
import type { DbRequest } from './request.ts';

/** Runs after the statements on their connection. Rejects only when the connection is lost. */
export type Conclude = (
  connection: Connection,
  error: ServerError | null,
  results: readonly ResultNote[],
) => Promise<DbEnding>;

type ConclusionSettings = Pick<Config, 'section' | 'host' | 'socket'>;

/** The results before an error, as the statements that they belong to, and the one that failed. */
export type MappedResults = {
  readonly applied: readonly Applied[];
  readonly failedIndex: number;
  readonly failedVerb: string;
};

/** ER_PARSE_ERROR: the statement was not run, whatever its first word is. */
const syntaxError = 1064;

/** Metadata after success, ROLLBACK after an error; null: nothing follows. */
export function createConclusion(
  config: ConclusionSettings,
  request: DbRequest,
  sql: string,
): Conclude | null {
  const { metadata, rollbackOnError } = request;
  if (metadata.length === 0 && !rollbackOnError) return null;
  return async (connection, error, results) => {
    if (error === null) {
      return { trailer: await fetchMetadata(config, metadata, connection), rolledBack: false };
    }
    if (!rollbackOnError) return { trailer: [], rolledBack: false };
    await runTogether(connection, [statementCommand('ROLLBACK', connection.columns)]);
    const { applied, failedVerb } = mapResults(sql, results);
    const rolledBack = rollbackUndoesAll(applied, error.errno === syntaxError ? '' : failedVerb);
    return {
      trailer: [
        ['ROLLBACK_ON_ERROR', 'true'],
        ['ROLLBACK_ON_ERROR_SUCCESS', String(rolledBack)],
      ],
      rolledBack,
    };
  };
}

/** Which statements the results before an error belong to, and which one failed. */
export function mapResults(sql: string, results: readonly ResultNote[]): MappedResults {
  const statements = scanStatements(sql);
  const map = createResultMap(statements);
  const applied: Applied[] = results.map(({ isResultSet, inTransaction }) => ({
    verb: statements[map.next(isResultSet)]?.verb ?? '',
    inTransaction,
  }));
  const failedIndex = map.next(false);
  return { applied, failedIndex, failedVerb: statements[failedIndex]?.verb ?? '' };
}
