// Which of the media types and codings that can be given a client likes best (RFC 9110 sections 12.4.2, 12.5.1, 12.5.3).
// Must not know what they look like.

/** What replies can be, the one first that is given where it is all the same. */
export const mediaTypes = ['application/json', 'application/x-ndjson', 'text/csv'] as const;

/** One of them. */
export type MediaType = (typeof mediaTypes)[number];

/** The media type for an Accept header; null: none that is offered is acceptable. Without a header all are. */
export function chooseMediaType(
  accept: string | undefined,
  offered: readonly MediaType[] = mediaTypes,
): MediaType | null {
  if (accept === undefined || accept.trim() === '') return offered[0] ?? null;
  const ranges = parseWeighted(accept);
  let best: MediaType | null = null;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, ranges);
    if (quality > bestQuality) [best, bestQuality] = [type, quality];
  }
  return best;
}

/** Whether an Accept-Encoding header likes gzip at least as well as a reply as it is. Without a header nobody asked. */
export function prefersGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  const codings = parseWeighted(acceptEncoding);
  const find = (name: string) => codings.find(({ range }) => range === name)?.quality;
  const gzip = find('gzip') ?? find('x-gzip') ?? find('*') ?? 0;
  return gzip > 0 && gzip >= (find('identity') ?? 0);
}

type Weighted = { readonly range: string; readonly quality: number };

function parseWeighted(header: string): readonly Weighted[] {
  return header.split(',').map(parseRange);
}

/** A weight has three digits behind the point at most; what is no weight stands for 0. */
function parseRange(text: string): Weighted {
  const [range = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  if (weight === undefined) return { range, quality: 1 };
  return { range, quality: /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0 };
}

/** The most exact range that covers the type decides. */
function qualityOf(type: MediaType, ranges: readonly Weighted[]): number {
  const [kind] = type.split('/');
  for (const covering of [type, `${kind}/*`, '*/*']) {
    const found = ranges.find(({ range }) => range === covering);
    if (found !== undefined) return found.quality;
  }
  return 0;
}
