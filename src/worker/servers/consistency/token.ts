// X-Consistency-Token: the server that a client has read from, and its position; as text, and signed if gateways share a key. Pure.
import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  formatSets,
  type GtidSets,
  holdsSets,
  parseSets,
} from '../../../shared/servers/gtid-sets.ts';
import type { Position } from '../../../shared/servers/position.ts';

/** For each domain, the last event that the client may have seen: MariaDB's `domain-server-number`. */
export type MariadbEvents = ReadonlyMap<
  string,
  { readonly server: string; readonly number: bigint }
>;

/** An upper bound of what a client has seen. */
export type SeenPosition =
  | { readonly kind: 'mariadb'; readonly events: MariadbEvents }
  /** `owned`: being committed, and perhaps seen; they may have been rolled back instead. */
  | { readonly kind: 'mysql'; readonly executed: GtidSets; readonly owned: GtidSets }
  | { readonly kind: 'galera'; readonly cluster: string; readonly committed: bigint };

/** The positions that the token's client has seen. */
export type Token = {
  /** The server's own name. */
  readonly server: string;
  readonly position: SeenPosition;
};

const version = '1';
const base64url = /^[\w-]+$/;
const maxCharacters = 4096;
const macBytes = 16;
const letters = { mariadb: 'm', mysql: 's', galera: 'g' } as const;

/** A token as text; null: it would be longer than 4 KiB. @param key null: it is not signed */
export function encodeToken({ server, position }: Token, key: Buffer | null): string | null {
  const payload = JSON.stringify([letters[position.kind], server, ...fieldsOf(position)]);
  const body = `${version}.${Buffer.from(payload).toString('base64url')}`;
  const text = key === null ? body : `${body}.${sign(body, key)}`;
  return text.length > maxCharacters ? null : text;
}

/** Reads a token; null: it is not a token of these gateways. Never throws. */
export function decodeToken(text: string, key: Buffer | null): Token | null {
  if (text.length > maxCharacters) return null;
  const [found, payload = '', mac = '', ...rest] = text.split('.');
  if (found !== version || !base64url.test(payload) || rest.length > 0) return null;
  if (key !== null && !isSigned(`${found}.${payload}`, mac, key)) return null;
  try {
    const fields: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return Array.isArray(fields) && fields.every((field) => typeof field === 'string')
      ? tokenOf(fields)
      : null;
  } catch {
    return null;
  }
}

function fieldsOf(position: SeenPosition): readonly string[] {
  switch (position.kind) {
    case 'mariadb':
      return [formatEvents(position.events)];
    case 'mysql':
      return [formatSets(position.executed), formatSets(position.owned)];
    case 'galera':
      return [position.cluster, String(position.committed)];
    default:
      return position satisfies never;
  }
}

function tokenOf([letter, server = '', first = '', second = '']: readonly string[]): Token | null {
  const position = positionOf(letter, first, second);
  return position === null ? null : { server, position };
}

function positionOf(
  letter: string | undefined,
  first: string,
  second: string,
): SeenPosition | null {
  if (letter === letters.mariadb) {
    const events = parseEvents(first);
    return events === null ? null : { kind: 'mariadb', events };
  }
  if (letter === letters.mysql) {
    const [executed, owned] = [parseSets(first), parseSets(second)];
    return executed === null || owned === null ? null : { kind: 'mysql', executed, owned };
  }
  const isGalera = letter === letters.galera && /^[0-9a-f-]{36}$/i.test(first);
  return isGalera && /^\d{1,19}$/.test(second)
    ? { kind: 'galera', cluster: first, committed: BigInt(second) }
    : null;
}

/** As MariaDB writes and reads them. */
export function formatEvents(events: MariadbEvents): string {
  return [...events].map(([domain, { server, number }]) => `${domain}-${server}-${number}`).join();
}

/** Null: it is not a list of MariaDB's. @param by each domain once; or each domain and server, as gtid_binlog_state lists them */
export function parseEvents(
  text: string,
  by: 'domain' | 'domain and server' = 'domain',
): MariadbEvents | null {
  const events = new Map<string, { server: string; number: bigint }>();
  if (text === '') return events;
  for (const gtid of text.split(',')) {
    const found = /^(\d{1,10})-(\d{1,10})-(\d{1,20})$/.exec(gtid);
    if (found === null) return null;
    const key = by === 'domain' ? `${found[1]}` : `${found[1]}-${found[2]}`;
    events.set(key, { server: `${found[2]}`, number: BigInt(`${found[3]}`) });
  }
  return events;
}

function sign(body: string, key: Buffer): string {
  return createHmac('sha256', key)
    .update(body)
    .digest()
    .subarray(0, macBytes)
    .toString('base64url');
}

function isSigned(body: string, mac: string, key: Buffer): boolean {
  const [given, expected] = [Buffer.from(mac), Buffer.from(sign(body, key))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/**
 * Whether a server's history has all that a client has seen. True only if that is certain; the server may still show it later.
 * @param position the server's at its latest probe; null: it has none, or does not report it
 */
export function covers(position: Position | null, seen: SeenPosition): boolean {
  if (position === null) return false;
  switch (seen.kind) {
    case 'mariadb':
      // Another server's event with the same number proves nothing.
      return (
        position.kind === 'mariadb' &&
        [...seen.events].every(
          ([domain, { server, number }]) =>
            (position.highest.get(`${domain}-${server}`) ?? -1n) >= number,
        )
      );
    case 'mysql':
      return (
        position.kind === 'mysql' &&
        holdsSets(position.sets, seen.executed) &&
        holdsSets(position.sets, seen.owned)
      );
    case 'galera':
      return (
        position.kind === 'galera' &&
        position.cluster === seen.cluster &&
        position.committed >= seen.committed
      );
    default:
      return seen satisfies never;
  }
}
