// An instance's memory of the primary of one section: all its workers share it, the supervisor keeps it on disk, and judge.ts decides by
// it. Pure.
import { isDeepStrictEqual } from 'node:util';
import { formatPosition, parsePosition } from './position.ts';
import type { ServerView } from './server-view.ts';

/**
 * The server that a replica follows, as that replica names it. Two of these are compared by the uuid if both have one, else by the
 * number if both have one, else by the address.
 */
export type RememberedSource = {
  /** Its server_id; null: the replica has not reached it since the replica was started. */
  readonly number: string | null;
  /** MySQL's server_uuid; null: MariaDB has none. */
  readonly uuid: string | null;
  /** `host:port`, as the replica is configured; null: the account may not see it. */
  readonly address: string | null;
};

/** The server that takes writes. */
export type RememberedPrimary = {
  /** As written in `host`. */
  readonly address: string;
  /** MySQL: its server_uuid. MariaDB: `<address>/<server_id>`. */
  readonly identity: string;
  /** Its server_id, by which replicas name it. */
  readonly number: string;
  /** Unix time in seconds, by the server's own clock. May be off by one. */
  readonly startedAt: number;
  /** Its position when it was chosen (GTIDs, see `formatPosition`); null: it had none, or did not report it. */
  readonly taken: string | null;
  /** Its last known position. */
  readonly position: string | null;
};

/** A server that was seen as a replica, and has not been seen writable beside a primary since. */
export type RememberedReplica = {
  readonly identity: string;
  readonly follows: RememberedSource;
  /** The term in which it was last seen behind the primary; null: it was never seen behind a remembered primary. */
  readonly term: number | null;
};

/** The memory of one section. Only servers that replicate asynchronously have one. */
export type PrimaryMemory = {
  /** Rises by one with each change. */
  readonly version: number;
  /** Rises by one with each new primary. */
  readonly term: number;
  readonly primary: RememberedPrimary;
  /** In the order of their identities, each identity once. */
  readonly replicas: readonly RememberedReplica[];
  /** The identities of servers that were the primary before and have not been seen as replicas since, in order. */
  readonly former: readonly string[];
};

/** Reads what `formatPrimaryMemory` has written. Null: the text is something else. */
export function parsePrimaryMemory(text: string): PrimaryMemory | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const memory = readMemory(value);
  // An additional or repeated key means that something else has written it.
  return memory !== null && isDeepStrictEqual(memory, value) ? memory : null;
}

/** The content of the file: JSON, and one line feed at its end. */
export function formatPrimaryMemory(memory: PrimaryMemory): string {
  return `${JSON.stringify(memory, null, 2)}\n`;
}

/**
 * The memory after an operator has named the primary. Nothing that was seen before counts against it.
 * @param memory what was remembered until then; null: nothing
 */
export function overridePrimary(
  memory: PrimaryMemory | null,
  primary: Omit<RememberedPrimary, 'taken'>,
): PrimaryMemory {
  const before = memory === null ? [] : [...memory.former, memory.primary.identity];
  return {
    version: (memory?.version ?? 0) + 1,
    term: (memory?.term ?? 0) + 1,
    primary: { ...primary, taken: primary.position },
    replicas: [],
    former: [...new Set(before)].filter((identity) => identity !== primary.identity).sort(),
  };
}

/** The name by which a server is remembered. @param address as written in `host` */
export function identityOf(address: string, { uuid, number }: ServerView): string {
  return uuid ?? `${address}/${number}`;
}

/** A server as it is remembered when it takes writes. @param address as written in `host` */
export function describePrimary(
  address: string,
  view: ServerView,
): Omit<RememberedPrimary, 'taken'> {
  const { number, identity, position } = view;
  return {
    address,
    identity: identityOf(address, view),
    number,
    startedAt: identity.startedAt,
    position: position === null ? null : formatPosition(position),
  };
}

type Fields = Readonly<Record<string, unknown>>;

function readMemory(value: unknown): PrimaryMemory | null {
  if (!isFields(value)) return null;
  const { version, term, replicas, former } = value;
  const primary = readPrimary(value.primary);
  if (!isCount(version) || !isCount(term) || primary === null) return null;
  if (!Array.isArray(replicas) || !Array.isArray(former)) return null;
  const readReplicas = replicas.flatMap((one) => readReplica(one, term) ?? []);
  if (readReplicas.length !== replicas.length || !former.every(isName)) return null;
  const identities = readReplicas.map(({ identity }) => identity);
  if (!isOrdered(identities) || !isOrdered(former)) return null;
  if (identities.includes(primary.identity) || former.includes(primary.identity)) return null;
  return { version, term, primary, replicas: readReplicas, former };
}

function readPrimary(value: unknown): RememberedPrimary | null {
  if (!isFields(value)) return null;
  const { address, identity, number, startedAt, taken, position } = value;
  if (!isName(address) || !isName(identity) || !isNumber(number)) return null;
  if (typeof startedAt !== 'number' || !Number.isSafeInteger(startedAt)) return null;
  if (!isPosition(taken) || !isPosition(position)) return null;
  return { address, identity, number, startedAt, taken, position };
}

function readReplica(value: unknown, latest: number): RememberedReplica | null {
  if (!isFields(value)) return null;
  const { identity, term } = value;
  const follows = readSource(value.follows);
  if (!isName(identity) || follows === null) return null;
  if (term !== null && !(isCount(term) && term <= latest)) return null;
  return { identity, follows, term };
}

function readSource(value: unknown): RememberedSource | null {
  if (!isFields(value)) return null;
  const { number, uuid, address } = value;
  if (number !== null && !isNumber(number)) return null;
  if (uuid !== null && !isName(uuid)) return null;
  if (address !== null && !isName(address)) return null;
  return { number, uuid, address };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isNumber(value: unknown): value is string {
  return typeof value === 'string' && /^\d{1,10}$/.test(value);
}

function isPosition(value: unknown): value is string | null {
  return value === null || (typeof value === 'string' && parsePosition(value) !== null);
}

/** Whether they are in ascending order, each once. */
function isOrdered(names: readonly string[]): boolean {
  return names.every((name, at) => at === 0 || (names[at - 1] as string) < name);
}
