// How rows and values of a reply look, and what precedes the rows: made once for each kind of reply and layout, and kept.
import {
  createCsvHeads,
  createNdjsonHeads,
  createV1Heads,
  type V1Layout,
} from '../../encode/formats/v1-heads.ts';
import type { ResultHeads } from '../../encode/result-rows.ts';
import { type FieldCheck, isOneOf } from '../fields.ts';
import { type MediaType, mediaTypes } from './headers.ts';

/** The fields that choose a layout. */
export const layoutChecks: readonly (readonly [string, FieldCheck])[] = [
  ['rows', isOneOf('array', 'object')],
  ['numbers', isOneOf('exact', 'raw')],
  ['json', isOneOf('value', 'string')],
];

/** All layouts, each once, so that it can be a key of a Map. */
const layouts: readonly V1Layout[] = (['array', 'object'] as const).flatMap((rows) =>
  (['exact', 'raw'] as const).flatMap((numbers) =>
    (['value', 'string'] as const).map((json) => Object.freeze({ rows, numbers, json })),
  ),
);

/** The layout that a request asks for, by fields that have been checked. */
export function layoutOf({ rows, numbers, json }: Readonly<Record<string, unknown>>): V1Layout {
  const at =
    (rows === 'object' ? 4 : 0) + (numbers === 'raw' ? 2 : 0) + (json === 'string' ? 1 : 0);
  return layouts[at] as V1Layout;
}

/** Finds the heads of a kind of reply. */
export type HeadsOf = (type: MediaType, layout: V1Layout) => ResultHeads;

/** Creates a memory of heads, one for each endpoint of a worker. Layouts are those of `layoutOf`. */
export function rememberHeads(): HeadsOf {
  const all = new Map<MediaType, Map<V1Layout, ResultHeads>>(
    mediaTypes.map((type) => [type, new Map()]),
  );
  return (type, layout) => {
    const ofType = all.get(type);
    let heads = ofType?.get(layout);
    if (heads === undefined) {
      heads = createHeads(type, layout);
      ofType?.set(layout, heads);
    }
    return heads;
  };
}

function createHeads(type: MediaType, layout: V1Layout): ResultHeads {
  switch (type) {
    case 'application/json':
      return createV1Heads(layout);
    case 'application/x-ndjson':
      return createNdjsonHeads(layout);
    case 'text/csv':
      return createCsvHeads();
    default:
      return type satisfies never;
  }
}

const names: ReadonlyMap<V1Layout, string> = new Map(
  layouts.map((layout) => [layout, Object.values(layout).join(' ')]),
);

/** A name for each layout of `layoutOf`. */
export function nameLayout(layout: V1Layout): string {
  return names.get(layout) as string;
}
