// How rows and their values look in the formats of /v1, as a request has chosen.
// Must not know what stands around the rows.
import { type Column, columnName } from '../../../shared/mysql/packets.ts';
import type { CellRules } from '../column-kinds.ts';
import { type Failure, refusal } from '../failure.ts';
import { objectKeys, planRow, type RowPlan } from '../rows.ts';

/** What a request chooses of how its rows look. */
export type V1Layout = {
  readonly rows: 'array' | 'object';
  readonly numbers: 'exact' | 'raw';
  readonly json: 'value' | 'string';
};

/** How the rows of some columns are written; `refused` says why they cannot be, which only objects know. */
export type PlannedRows = { readonly plan: RowPlan; readonly refused?: Failure };

/** Plans rows of JSON. */
export function planV1Rows(columns: readonly Column[], layout: V1Layout): PlannedRows {
  const rules = v1Cells(layout);
  if (layout.rows === 'array') return { plan: planRow(columns, rules) };
  const names = columns.map(columnName);
  const plan = planRow(columns, rules, objectKeys(names));
  const twice = [...new Set(names.filter((name, index) => names.indexOf(name) !== index))];
  return twice.length === 0 ? { plan } : { plan, refused: duplicateColumns(twice) };
}

/** So many are named, and so much of each. */
const mostNamed = 10;
const longestNamed = 64;

function duplicateColumns(names: readonly string[]): Failure {
  const named = names
    .slice(0, mostNamed)
    .map((name) => JSON.stringify(name.slice(0, longestNamed)));
  const list = names.length > mostNamed ? [...named, '…'] : named;
  return refusal(
    'DUPLICATE_COLUMNS',
    `Rows cannot be objects: more than one column is called ${list.join(', ')}. Name them apart with AS, or ask for "rows":"array".`,
  );
}

/** How cells are written in CSV: JSON is its text, and there are no strings to put exact numbers into. */
export const csvCells: CellRules = {
  numbersAsStrings: 'none',
  yearIsNumber: true,
  jsonIsValue: false,
};

/** How cells are written: exact numbers are strings where a double could not hold them. */
function v1Cells({ numbers, json }: V1Layout): CellRules {
  return {
    numbersAsStrings: numbers === 'exact' ? 'wide' : 'none',
    yearIsNumber: true,
    jsonIsValue: json === 'value',
  };
}
