// What stands before the rows of a result, made once for each kind of reply and kept: columns are described again only when they change.
// Must not know requests.
import {
  createCsvHeads,
  createNdjsonHeads,
  createV1Heads,
  type V1Layout,
} from '../../encode/formats/v1-heads.ts';
import type { ResultHeads } from '../../encode/result-rows.ts';
import { type MediaType, mediaTypes } from './accept.ts';

/** Finds the heads of a kind of reply. */
export type HeadsOf = (type: MediaType, layout: V1Layout) => ResultHeads;

/** Creates what remembers them: one for each endpoint of a worker. Layouts are those of `layoutOf`, of which there are few. */
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

/** Tells one layout from another. */
export function nameLayout({ rows, numbers, json }: V1Layout): string {
  return `${rows} ${numbers} ${json}`;
}
