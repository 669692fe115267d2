// The content of a reply of /db, for tests about rows and errors rather than bytes.
import assert from 'node:assert/strict';
import type { Reply } from './ask.ts';

/** The keys of a /db document that tests read. */
export type Document = {
  readonly RESULT?: Result | readonly Result[];
  readonly MYSQL_ERRNO?: number;
  readonly MYSQL_ERROR?: string;
  readonly OUTCOME?: string;
  readonly STATEMENT?: number;
  readonly ROLLBACK_ON_ERROR?: boolean;
  readonly ROLLBACK_ON_ERROR_SUCCESS?: boolean;
  readonly ERROR?: string;
  readonly CODE?: string;
};

type Cell = string | number | null;

type Result = {
  readonly ROWS?: readonly (readonly Cell[])[];
  readonly AFFECTED_ROWS?: number;
  readonly INSERT_ID?: number;
};

/** The document; fails unless the status is the expected one. */
export function documentOf(reply: Reply, status = 200): Document {
  assert.equal(reply.status, status, reply.text);
  return reply.json<Document>();
}

/** The results as an array; fails when MySQL reported an error. */
export function resultsOf(reply: Reply): readonly Result[] {
  const { RESULT, MYSQL_ERRNO, MYSQL_ERROR } = documentOf(reply);
  assert.equal(MYSQL_ERRNO, undefined, `${MYSQL_ERRNO} ${MYSQL_ERROR}`);
  return Array.isArray(RESULT) ? (RESULT as readonly Result[]) : [RESULT as Result];
}

/** The rows of the last result. */
export function rowsOf(reply: Reply): readonly (readonly Cell[])[] {
  return resultsOf(reply).at(-1)?.ROWS ?? [];
}

/** The only cell of the last result. */
export function cellOf(reply: Reply): Cell | undefined {
  return rowsOf(reply)[0]?.[0];
}

/** The outcome of a statement according to a refused or unanswered request. */
export function outcomeOf(reply: Reply): string {
  const { CODE, OUTCOME } = reply.json<Document>();
  return `${reply.status} ${CODE} ${OUTCOME}`;
}
