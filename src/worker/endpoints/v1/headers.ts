// The headers of a request to /v1: the media type and coding of its reply, and its idempotency key. Media types and codings by weight, RFC
// 9110 sections 12.4.2, 12.5.1 and 12.5.3.

import { type Failure, refusal } from '../../failure/failure.ts';
import type { IncomingRequest, RequestHeaders } from '../../http/request.ts';
import { checkKey } from './idempotency.ts';

/** The media types of replies. If a client accepts several best, it gets the first of them. */
export const mediaTypes = ['application/json', 'application/x-ndjson', 'text/csv'] as const;

/** One of them. */
export type MediaType = (typeof mediaTypes)[number];

const notAcceptable = refusal('NOT_ACCEPTABLE', `The reply is one of ${mediaTypes.join(', ')}.`);

/**
 * The fault of a request's headers, before its body is read; null: none.
 * @param takesKeys whether any section does
 */
export function checkHeaders({ headers }: IncomingRequest, takesKeys: boolean): Failure | null {
  const refused = checkKey(keyHeader(headers), takesKeys);
  if (refused !== null) return refused;
  return chooseMediaType(headers.accept) === null ? notAcceptable : null;
}

/** The Idempotency-Key of a request as it was sent. */
export function keyHeader(headers: RequestHeaders): string | undefined {
  return headers['idempotency-key'] as string | undefined;
}

/** The media type for an Accept header; null: none that is offered is acceptable. Without a header all are. */
export function chooseMediaType(
  accept: string | undefined,
  offered: readonly MediaType[] = mediaTypes,
): MediaType | null {
  if (accept === undefined || accept === '*/*' || accept.trim() === '') return offered[0] ?? null;
  const named = offered.indexOf(accept as MediaType);
  if (named >= 0) return offered[named] as MediaType;
  const ranges = parseWeighted(accept);
  let best: MediaType | null = null;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, ranges);
    if (quality > bestQuality) [best, bestQuality] = [type, quality];
  }
  return best;
}

/** JSON; null: the client does not accept it. */
export function chooseJson({ accept }: RequestHeaders): MediaType | null {
  return chooseMediaType(accept, ['application/json']);
}

/** Whether a client accepts gzip at least as well as a reply as it is. Without Accept-Encoding it does not ask for it. */
export function prefersGzip({ 'accept-encoding': accepted }: RequestHeaders): boolean {
  if (accepted === undefined) return false;
  if (unweighted.test(accepted) && gzip.test(accepted)) return true;
  const codings = parseWeighted(accepted);
  const find = (name: string) => codings.find(({ range }) => range === name)?.quality;
  const quality = find('gzip') ?? find('x-gzip') ?? find('*') ?? 0;
  return quality > 0 && quality >= (find('identity') ?? 0);
}

/** As nearly all clients write it: without weights, gzip is as good as what is not coded. */
const unweighted = /^[\w-]+(?:, ?[\w-]+)*$/;
const gzip = /(?:^|, ?)gzip(?:,|$)/;

type Weighted = { readonly range: string; readonly quality: number };

function parseWeighted(header: string): readonly Weighted[] {
  return header.split(',').map(parseRange);
}

/** A weight has at most three digits after the point; anything else counts as 0. */
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
