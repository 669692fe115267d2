// The texts of the server's warnings about a statement. The session is asked for them right behind the statement, before anything else
// runs there: the next statement may clear them.
import { foreignCharset } from '../../shared/mysql/charsets.ts';
import { cellsOf } from '../../shared/mysql/commands.ts';
import type { Column } from '../../shared/mysql/packets.ts';
import type { ResultNote } from '../../shared/mysql/query.ts';
import type { ServerWarning } from './execution.ts';
import type { LeaseSink } from './session-lease.ts';

/** A reply lists at most this number of warnings. */
export const maxListedWarnings = 10;

/**
 * It leaves the warnings, LAST_INSERT_ID() and a SELECT's FOUND_ROWS() as they are, and sets ROW_COUNT() to -1 (seen on MariaDB 10.11 and
 * MySQL 9.7). It shows fewer warnings than the statement has if `max_error_count` is lower than their number.
 */
export const showWarnings = `SHOW WARNINGS LIMIT ${maxListedWarnings}`;

/**
 * Whether the last result of a statement has warnings. If not, the session may still have those of an earlier statement (seen on MariaDB:
 * a SELECT without tables clears nothing).
 */
export function hasWarnings(results: readonly ResultNote[]): boolean {
  return (results.at(-1)?.warnings ?? 0) > 0;
}

const rowCount = /\brow_count\b/i;

/** Whether the answer to a text would be another one if its session were asked for warnings before it. */
export function dependsOnRowCount(sql: string): boolean {
  return rowCount.test(sql);
}

/** Collects the warnings from the answer to `showWarnings`. */
export class WarningRows implements LeaseSink {
  readonly hasChangedState = false;
  readonly list: ServerWarning[] = [];
  /** The character set of the texts; null: UTF-8. A session's settings may change it. */
  #charset: string | null = null;

  columns(columns: readonly Column[]): void {
    this.#charset = foreignCharset(columns.at(-1)?.charset ?? 0);
  }

  tooWide(): void {}

  row(bytes: Buffer, start: number, end: number): void {
    const [level, errno, message] = cellsOf(bytes, start, end, this.#charset);
    if (this.list.length === maxListedWarnings) return;
    this.list.push({ level: level ?? '', errno: Number(errno), message: message ?? '' });
  }

  endOfRows(): void {}

  ok(): void {}
}
