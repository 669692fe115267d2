// Which of the media types that can be given a client likes best (RFC 9110 section 12.5.1).
// Must not know what they look like.

/** What replies can be, the one first that is given where it is all the same. */
const offered = ['application/json'] as const;

/** One of them. */
export type MediaType = (typeof offered)[number];

/** The media type for an Accept header; null: none that is given here is acceptable. Without a header all are. */
export function chooseMediaType(accept: string | undefined): MediaType | null {
  if (accept === undefined || accept.trim() === '') return offered[0];
  const ranges = accept.split(',').map(parseRange);
  let best: MediaType | null = null;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, ranges);
    if (quality > bestQuality) [best, bestQuality] = [type, quality];
  }
  return best;
}

type MediaRange = { readonly range: string; readonly quality: number };

function parseRange(text: string): MediaRange {
  const [range = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='));
  const quality = weight === undefined ? 1 : Number(weight.slice(2));
  return { range, quality: quality >= 0 && quality <= 1 ? quality : 0 };
}

/** The most exact range that covers the type decides. */
function qualityOf(type: MediaType, ranges: readonly MediaRange[]): number {
  const [kind] = type.split('/');
  for (const covering of [type, `${kind}/*`, '*/*']) {
    const found = ranges.find(({ range }) => range === covering);
    if (found !== undefined) return found.quality;
  }
  return 0;
}
