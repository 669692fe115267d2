// A client: who may ask, what it may do, and how much of a worker it may use. Plain data that supervisor and workers exchange.

/** The permissions that a client may have, in the order of the documentation. `allow = all` stands for all of them. */
export const permissions = [
  'sql',
  'named',
  'batch',
  'transaction',
  'drivers',
  'mcp',
  'observe',
  'kill',
  'metrics',
] as const;

export type Permission = (typeof permissions)[number];

/** A condition on a JSON Web Token: the claim at that path equals the value, or is a list that contains it. */
export type ClaimCondition = {
  /** Each segment is the name of a member: `realm_access.roles` has two, `'https://example.com/roles'` has one. */
  readonly path: readonly string[];
  readonly value: string;
};

/** One client. Null: the client has no limit of its own, and the section's counts. */
export type Client = {
  readonly name: string;
  readonly allow: readonly Permission[];
  /** SHA-256 of its tokens, in lower-case hexadecimal. */
  readonly tokenDigests: readonly string[];
  /** A JSON Web Token belongs to the client if all of them hold. Empty: none does. */
  readonly conditions: readonly ClaimCondition[];
  /** The claims that it may state itself. */
  readonly mayClaim: readonly string[];
  /** The sections that it may use, in the order in which they are served. Null: all. */
  readonly sections: readonly string[] | null;
  readonly readOnly: boolean;
  /** Its weight where requests wait. */
  readonly share: number;
  /** The most requests of it that run at once, per worker. */
  readonly maxInFlight: number | null;
  /** The most requests of it that wait, per worker. */
  readonly queue: number | null;
  readonly maxRows: number | null;
  readonly maxResultBytes: number | null;
  readonly statementTimeoutMs: number | null;
  readonly maxWaitMs: number | null;
  /** From this moment on it is rejected: the beginning of a day in UTC, in ms. Null: never. */
  readonly expiresAt: number | null;
};

/** The name of the client of requests without any credentials. */
export const anonymousName = 'anonymous';

/** The contents of a clients file. */
export type Clients = {
  /** In the order of the file, which decides to which client a JSON Web Token belongs. */
  readonly clients: readonly Client[];
  /** The client of requests without any credentials. Null: they are rejected. */
  readonly anonymous: Client | null;
};

/** The client of all requests where no clients are configured, and of the section's tokens where some are. */
export const defaultClient: Client = Object.freeze({
  name: 'default',
  allow: permissions,
  tokenDigests: [],
  conditions: [],
  mayClaim: [],
  sections: null,
  readOnly: false,
  share: 1,
  maxInFlight: null,
  queue: null,
  maxRows: null,
  maxResultBytes: null,
  statementTimeoutMs: null,
  maxWaitMs: null,
  expiresAt: null,
});

/** Whether a client may do that. */
export function isAllowed({ allow }: Client, permission: Permission): boolean {
  return allow.includes(permission);
}

/** Whether a client is rejected because of its date. @param now in ms since 1970 */
export function hasExpired({ expiresAt }: Client, now: number): boolean {
  return expiresAt !== null && now >= expiresAt;
}
