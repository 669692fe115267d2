// What stands before a result set's rows, and how its rows are written: made once for each set of columns.
// Must not know connections; relies on equal column definitions being the same array.
import { type Column, columnName } from '../../shared/mysql/packets.ts';
import { typeName } from './column-kinds.ts';
import type { RowModule } from './row-module.ts';
import { planRow, type RowPlan } from './rows.ts';

/** One kind of result set. */
export type ResultHead = {
  /** `{"HEADER":[…],"TYPES":[…],"ROWS":[` */
  readonly json: Buffer;
  readonly plan: RowPlan;
};

/** Remembers heads for as long as their columns are remembered. */
export class ResultHeads {
  /** What writes the rows below these heads many at once; null: nothing does. */
  readonly rowModule: RowModule | null;
  readonly #withNumbers = new WeakMap<readonly Column[], ResultHead>();
  readonly #withStrings = new WeakMap<readonly Column[], ResultHead>();

  constructor(rowModule: RowModule | null) {
    this.rowModule = rowModule;
  }

  /** @param exactAsStrings whether exact numbers become JSON strings */
  find(columns: readonly Column[], exactAsStrings: boolean): ResultHead {
    const heads = exactAsStrings ? this.#withStrings : this.#withNumbers;
    let head = heads.get(columns);
    if (head === undefined) {
      head = createHead(columns, exactAsStrings);
      heads.set(columns, head);
    }
    return head;
  }
}

function createHead(columns: readonly Column[], exactAsStrings: boolean): ResultHead {
  const names = columns.map((column) => JSON.stringify(columnName(column)));
  const types = columns.map(({ type }) => `"${typeName(type)}"`);
  return {
    json: Buffer.from(`{"HEADER":[${names.join(',')}],"TYPES":[${types.join(',')}],"ROWS":[`),
    plan: planRow(columns, exactAsStrings),
  };
}
