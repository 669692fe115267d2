// Decides whether a request is let in: the host that it names, and the browser page behind it.
import type { Config } from '../../shared/config/config.ts';
import { type Failure, refusal } from '../failure/failure.ts';
import type { IncomingRequest, RequestHeaders } from '../http/request.ts';
import { createCors } from './cors.ts';
import type { Scheme } from './identify.ts';

type GuardSettings = Pick<Config, 'allowHosts' | 'allowOrigins' | 'httpsTexts'>;

/** The host that a request's head names. */
export type Target = {
  readonly host: string | null;
  readonly authority: string | null;
};

/** Refuses a request; null: lets it pass. */
export type Guard = (target: Target, headers: RequestHeaders) => Failure | null;

/** Checks Host against DNS rebinding (for every path). */
export function createHostGuard(settings: Pick<GuardSettings, 'allowHosts'>): Guard {
  const { allowHosts } = settings;
  if (allowHosts === null) return () => null;
  const allowed = new Set(allowHosts);
  return ({ host }) =>
    host === null || allowed.has(host)
      ? null
      : refusal(
          'UNKNOWN_HOST',
          'The gateway does not serve this Host: allow_hosts does not list it.',
        );
}

const crossSite = (message: string) => refusal('CROSS_SITE', message);
const otherOrigin = crossSite(
  'A web page of another origin may not call this: allow_origins does not list it.',
);
const otherSite = crossSite(
  'A web page of another site may not call this: allow_origins does not list it.',
);
const noFetch = crossSite('A page of an origin in allow_origins may call this only by fetch().');
const prefetch = crossSite('A prefetch runs no SQL.');
const webSocket = crossSite('There are no WebSockets here.');

/**
 * Refuses web pages of other sites, and prefetches: a browser on the same machine is not its user. Pages of listed
 * origins may use fetch and XMLHttpRequest: what else a page can be made to load (images, scripts, forms, links,
 * WebSockets, an EventSource, which asks again by itself) runs no SQL of theirs either.
 * Clients that send none of these headers are not affected. Source: Fetch Metadata (W3C), RFC 6454.
 */
export function createBrowserGuard(settings: GuardSettings): Guard {
  const origins = new Set(settings.allowOrigins);
  const scheme = settings.httpsTexts === null ? 'http:' : 'https:';
  return ({ authority }, headers) => {
    const { origin } = headers;
    const purpose = headers['sec-purpose'] ?? headers.purpose ?? headers['x-moz'];
    if (purpose !== undefined && /prefetch|prerender|preview/i.test(String(purpose))) {
      return prefetch;
    }
    if (isWebSocket(headers)) return webSocket;
    if (origin !== undefined && origins.has(origin)) return isFetch(headers) ? null : noFetch;
    if (origin !== undefined && !isOwnOrigin(origin, scheme, authority)) return otherOrigin;
    const site = headers['sec-fetch-site'];
    return site === undefined || site === 'same-origin' || site === 'none' ? null : otherSite;
  };
}

/**
 * The same for a page that a link of another site may open. It opens in the browser's own window: no page can put it
 * into a frame, load it as anything else, or read it.
 */
export function createPageGuard(settings: GuardSettings): Guard {
  const check = createBrowserGuard(settings);
  return (target, headers) => (isFollowedLink(headers) ? null : check(target, headers));
}

/** Forms name the origin that they come from; links do not. */
function isFollowedLink(headers: RequestHeaders): boolean {
  return (
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document' &&
    headers.origin === undefined &&
    headers['sec-purpose'] === undefined &&
    headers.purpose === undefined
  );
}

function isWebSocket(headers: RequestHeaders): boolean {
  if (headers.upgrade === undefined) return headers['sec-fetch-mode'] === 'websocket';
  return /websocket/i.test(headers.upgrade);
}

/** Browsers send mode and destination only on connections that they trust. */
function isFetch(headers: RequestHeaders): boolean {
  return (
    (headers['sec-fetch-mode'] ?? 'cors') === 'cors' &&
    (headers['sec-fetch-dest'] ?? 'empty') === 'empty' &&
    !(headers.accept ?? '').includes('text/event-stream')
  );
}

/** Another scheme on the same host is another server. A proxy that adds TLS has an origin that must be listed. */
function isOwnOrigin(origin: string, scheme: string, authority: string | null): boolean {
  if (authority === null) return false;
  try {
    const { protocol, host } = new URL(origin);
    return protocol === scheme && host === new URL(`${scheme}//${authority}`).host;
  } catch {
    return false;
  }
}

/**
 * The checks that a path asks for. `guarded`: host, browser and credentials. `open`: none, for balancers and orchestrators, which name the
 * gateway by address and have no token. `page`, which a link of another site may open, and its `file`s hold no data: host and browser are
 * checked, and no credentials. `driver`: as `guarded`, and the token is the password of Basic authentication.
 */
export type Access = 'guarded' | 'open' | 'page' | 'file' | 'driver';

/** How a path expects credentials; null: it needs none. */
export const schemes = {
  guarded: 'bearer',
  driver: 'basic',
  open: null,
  page: null,
  file: null,
} as const satisfies Readonly<Record<Access, Scheme | null>>;

/** Whether a request goes on; or its reply, if that is to a browser's preflight. */
export type Admission =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'preflight'; readonly headers: readonly string[] }
  | { readonly kind: 'refused'; readonly failure: Failure };

const admitted: Admission = { kind: 'admitted' };

/** The challenge of a 401 (RFC 6750 section 3, RFC 7617). */
export const challenges: Readonly<Record<Scheme, string>> = {
  bearer: 'Bearer',
  basic: 'Basic realm="dbhttpd", charset="UTF-8"',
};

/** Checks Host (421), then the browser (403). */
export function createAdmission(
  config: GuardSettings,
): (target: Target, request: IncomingRequest, access: Access) => Admission {
  const checkHost = createHostGuard(config);
  const checkBrowser = createBrowserGuard(config);
  const checkPage = createPageGuard(config);
  const cors = createCors(config.allowOrigins);
  return (target, { method, headers }, access) => {
    if (access !== 'open') {
      const checkOrigin = access === 'page' ? checkPage : checkBrowser;
      const failure = checkHost(target, headers) ?? checkOrigin(target, headers);
      if (failure !== null) return { kind: 'refused', failure };
    }
    // Before the credentials: a browser asks first whether it may send some.
    const leave = cors?.preflight(method, headers) ?? null;
    return leave === null ? admitted : { kind: 'preflight', headers: leave };
  };
}
