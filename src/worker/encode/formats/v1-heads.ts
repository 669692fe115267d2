// The heads of results in the formats of /v1: described columns, and how a request wants rows and values to look.

import { describeColumn } from '../../../shared/mysql/column-types.ts';
import { type Column, columnName } from '../../../shared/mysql/packets.ts';
import { type Failure, refusal } from '../../failure/failure.ts';
import type { CellRules } from '../columns.ts';
import { csvRecord } from '../csv-rows.ts';
import { type ResultHead, ResultHeads } from '../result-rows.ts';
import { objectKeys, planRow } from '../rows.ts';

/** A request's choice of how its rows look. */
export type V1Layout = {
  readonly rows: 'array' | 'object';
  readonly numbers: 'exact' | 'raw';
  readonly json: 'value' | 'string';
};

/** Creates the heads of JSON. Keep them as long as possible: they remember the columns that were described. */
export function createV1Heads(layout: V1Layout): ResultHeads {
  return createHeads(layout, (columns) => `{"columns":${columns},"rows":[`);
}

/**
 * Creates the heads of JSON with one row, to be kept in the same way. An object is a row and nothing else. Since the names of its columns
 * are not in an array, a row that is one follows them.
 */
export function createOneHeads(layout: V1Layout): ResultHeads {
  const isBare = layout.rows === 'object';
  return createHeads(layout, (columns) => (isBare ? '' : `{"columns":${columns},"row":`));
}

/** Creates the heads of NDJSON, to be kept in the same way. */
export function createNdjsonHeads(layout: V1Layout): ResultHeads {
  return createHeads(layout, (columns) => `{"columns":${columns}}\n`);
}

/** Creates the heads of CSV, to be kept in the same way. */
export function createCsvHeads(): ResultHeads {
  return new ResultHeads((columns) => ({
    bytes: csvRecord(columns.map(columnName)),
    plan: planRow(columns, csvCells),
  }));
}

/** @param frame puts the described columns, as JSON, into the text before the rows */
function createHeads(layout: V1Layout, frame: (columns: string) => string): ResultHeads {
  return new ResultHeads((columns) => planHead(columns, layout, frame));
}

function planHead(
  columns: readonly Column[],
  layout: V1Layout,
  frame: (columns: string) => string,
): ResultHead {
  const rules = v1Cells(layout);
  const names = columns.map(columnName);
  const headOf = (named: readonly string[]): ResultHead => ({
    bytes: Buffer.from(frame(describeColumns(columns, named))),
    plan: planRow(columns, rules, ...(layout.rows === 'array' ? [] : [objectKeys(named)])),
  });
  const twice = layout.rows === 'array' ? [] : findTwice(names);
  if (twice.length === 0) return headOf(names);
  const renamed = headOf(nameApart(names));
  return { ...headOf(names), clash: { failure: duplicateColumns(twice), renamed } };
}

/** Columns as a JSON array. Columns of one kind are described once: a thousand columns then take a quarter of the time. */
function describeColumns(columns: readonly Column[], names: readonly string[]): string {
  const known = new Map<string, string>();
  const described = columns.map((column, at) => {
    const { type, charset, flags, length, decimals, extendedType } = column;
    const kind = `${type} ${charset} ${flags} ${length} ${decimals} ${extendedType}`;
    let rest = known.get(kind);
    if (rest === undefined) {
      const { name: _, ...description } = describeColumn(column);
      rest = JSON.stringify(description).slice(1);
      known.set(kind, rest);
    }
    return `{"name":${JSON.stringify(names[at])},${rest}`;
  });
  return `[${described.join(',')}]`;
}

function findTwice(names: readonly string[]): readonly string[] {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) twice.add(name);
    seen.add(name);
  }
  return [...twice];
}

/** `id, id, id` becomes `id, id_2, id_3`. A name that another column has is skipped. */
export function nameApart(names: readonly string[]): readonly string[] {
  const own = new Set(names);
  const used = new Set<string>();
  const counts = new Map<string, number>();
  return names.map((name) => {
    let count = counts.get(name) ?? 1;
    let renamed = name;
    while (used.has(renamed) || (count > 1 && own.has(renamed))) {
      count += 1;
      renamed = `${name}_${count}`;
    }
    counts.set(name, count);
    used.add(renamed);
    return renamed;
  });
}

/** At most this many names are listed, and this many characters of each. */
const maxNamed = 10;
const maxNameLength = 64;

function duplicateColumns(names: readonly string[]): Failure {
  const named = names
    .slice(0, maxNamed)
    .map((name) => JSON.stringify(name.slice(0, maxNameLength)));
  const list = names.length > maxNamed ? [...named, '…'] : named;
  return refusal(
    'DUPLICATE_COLUMNS',
    `Rows cannot be objects: more than one column is called ${list.join(', ')}. Name them with AS, or ask for "rows":"array".`,
  );
}

/** The rules for cells of CSV: JSON is text, YEAR keeps its four digits, and exact numbers need no strings. */
const csvCells: CellRules = {
  numbersAsStrings: 'none',
  yearIsNumber: false,
  jsonIsValue: false,
};

/** The rules for cells of JSON: exact numbers are strings if a double may not hold them. */
function v1Cells({ numbers, json }: V1Layout): CellRules {
  return {
    numbersAsStrings: numbers === 'exact' ? 'wide' : 'none',
    yearIsNumber: true,
    jsonIsValue: json === 'value',
  };
}
