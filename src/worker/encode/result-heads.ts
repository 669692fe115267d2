// What stands before a result set's rows, and how its rows are written: made once for each set of columns.
// Must not know connections; relies on equal column definitions being the same array.
import type { Column } from '../../shared/mysql/packets.ts';
import type { Failure } from '../failure/failure.ts';
import type { RowPlan } from './rows.ts';

/** One kind of result set. */
export type ResultHead = {
  /** What stands before the first row. */
  readonly bytes: Buffer;
  readonly plan: RowPlan;
  /** Why there can be no rows of these columns, and what there is instead where the statement was executed in any case. */
  readonly clash?: { readonly failure: Failure; readonly renamed: ResultHead };
};

/** Remembers the heads of one format for as long as their columns are remembered. */
export class ResultHeads {
  readonly #create: (columns: readonly Column[]) => ResultHead;
  readonly #heads = new WeakMap<readonly Column[], ResultHead>();

  constructor(create: (columns: readonly Column[]) => ResultHead) {
    this.#create = create;
  }

  find(columns: readonly Column[]): ResultHead {
    let head = this.#heads.get(columns);
    if (head === undefined) {
      head = this.#create(columns);
      this.#heads.set(columns, head);
    }
    return head;
  }
}
