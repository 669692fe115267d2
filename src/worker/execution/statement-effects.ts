// What a statement may do beside what its text says, as far as is known of the tables that it names.
// Must not know how that is known.
import type { TableName } from '../../shared/sql/table-names.ts';

/** Asked whenever it matters: what is known may change while a statement waits or runs. */
export interface StatementEffects {
  /** The tables that it names; null: that is not known. */
  readonly tables: readonly TableName[] | null;
  /** Whether it calls something that is not known to be built in. */
  readonly hasUnknownCall: boolean;
  /**
   * Whether all that it names is known to do nothing beside what the text says: to change no data, to leave nothing
   * in the session, and to read nothing that was left there.
   */
  isHarmless(): boolean;
  /** The tables that it names, if it changes nothing but rows of these, and what their triggers and views lead to; null: that is not known. */
  readonly confinedTo: readonly TableName[] | null;
  /** Whether a ROLLBACK is known to undo all that it does, also one by a server that has lost the connection. */
  isUndoable(): boolean;
  /** Whether the same tables, unchanged, give the same answer. */
  isRepeatable(): boolean;
  /** To be told before the statement is sent. */
  sent(): void;
  /**
   * To be told when it has ended.
   * @param isCertain it was answered; else it may still come to its end, for as long as a KILL takes
   */
  ended(isCertain: boolean): void;
}

/** Those of a statement that names no table and changes none. */
export const noEffects: StatementEffects = {
  tables: [],
  hasUnknownCall: false,
  confinedTo: [],
  isUndoable: () => true,
  isHarmless: () => true,
  isRepeatable: () => true,
  sent: () => {},
  ended: () => {},
};
