// How values look in the formats of /v1, as a request has chosen.
// Must not know what stands around a row.
import type { CellRules } from '../column-kinds.ts';

/** What a request chooses of how its rows look. */
export type V1Layout = {
  readonly rows: 'array' | 'object';
  readonly numbers: 'exact' | 'raw';
  readonly json: 'value' | 'string';
};

/** How cells are written: exact numbers are strings where a double could not hold them. */
export function v1Cells({ numbers, json }: V1Layout): CellRules {
  return {
    numbersAsStrings: numbers === 'exact' ? 'wide' : 'none',
    yearIsNumber: true,
    jsonIsValue: json === 'value',
  };
}
