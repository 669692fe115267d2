// A failure as its client may see it. MySQL's words and the names of the database's objects are for clients that may use SQL.
import { type AnyFailure, consequences } from './failure.ts';

/** A failure without MySQL's text and without names of the database's objects; its code, status and outcome remain. */
export function withoutNames<Shown extends AnyFailure>(failure: Shown): Shown {
  const { namelessMessage, outcome } = failure;
  if (failure.code !== null) {
    return namelessMessage === undefined ? failure : { ...failure, message: namelessMessage };
  }
  const { errno, sqlState } = failure.error;
  const { hint: _, ...rest } = failure;
  const message =
    failure.shownCode === undefined
      ? `The database refused the statement. ${consequences[outcome]}`
      : failure.message;
  return { ...rest, message, error: { errno, sqlState, message: '' } } as Shown;
}

/** Whether `withoutNames` takes something away that only the log has then. */
export function hasNames({ code, namelessMessage }: AnyFailure): boolean {
  return code === null || namelessMessage !== undefined;
}
