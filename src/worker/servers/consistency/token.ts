// X-Consistency-Token: which server was seen, and how far its history went; as text, and signed where gateways share a key.
// Pure. Must not know how a position is asked for, nor what follows from it.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { formatSets, type GtidSets, parseSets } from '../../../shared/servers/gtid-sets.ts';

/** Of each domain the last event that may have been seen: MariaDB's `domain-server-number`. */
export type MariadbEvents = ReadonlyMap<
  string,
  { readonly server: string; readonly number: bigint }
>;

/** An upper bound of what was seen. */
export type SeenPosition =
  | { readonly kind: 'mariadb'; readonly events: MariadbEvents }
  /** `owned`: on their way to be committed, and perhaps seen; they may have been rolled back instead. */
  | { readonly kind: 'mysql'; readonly executed: GtidSets; readonly owned: GtidSets }
  | { readonly kind: 'galera'; readonly cluster: string; readonly committed: bigint };

/** What its bearer has seen. */
export type Token = {
  /** The server's name for itself. */
  readonly server: string;
  readonly position: SeenPosition;
};

const version = '1';
const base64url = /^[\w-]+$/;
const mostCharacters = 4096;
const macBytes = 16;
const letters = { mariadb: 'm', mysql: 's', galera: 'g' } as const;

/** A token as text; null: it would be longer than 4 KiB. @param key null: it is not signed */
export function encodeToken({ server, position }: Token, key: Buffer | null): string | null {
  const payload = JSON.stringify([letters[position.kind], server, ...fieldsOf(position)]);
  const body = `${version}.${Buffer.from(payload).toString('base64url')}`;
  const text = key === null ? body : `${body}.${sign(body, key)}`;
  return text.length > mostCharacters ? null : text;
}

/** Reads a token; null: it is none, or none of ours. Never throws. */
export function decodeToken(text: string, key: Buffer | null): Token | null {
  if (text.length > mostCharacters) return null;
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

/** Null: it is none of MariaDB's lists. @param by each domain once; or each domain and server, as gtid_binlog_state lists them */
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
