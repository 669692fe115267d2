// The file of clients: INI text becomes clients, or every fault is reported with its line.
import { createHash } from 'node:crypto';
import {
  type ClaimCondition,
  type Client,
  type Clients,
  type Permission,
  permissions,
} from '../clients/client.ts';
import { findNearest } from '../nearest-name.ts';
import { parseConditions } from './claim-conditions.ts';
import {
  type Entry,
  findStrayLines,
  type KeyForm,
  type NamedSection,
  readSections,
  type TextFault,
} from './ini-section.ts';
import { options } from './options.ts';
import { date, flag, integer, list, parseValue, type ValueOf, type ValueType } from './values.ts';

/** One key of a client. `initial`: its default as it is written in the file. `computed`: the words for one that is not. */
export type ClientOption = {
  readonly type: ValueType;
  readonly initial?: string;
  readonly computed?: string;
  /** Requests without credentials cannot have it. */
  readonly ofCredentials?: true;
  readonly meaning: string;
};

const maxRequests = 1_000_000;

/** A key that sections have, too. */
const ofSection = {
  computed: "the section's only",
  meaning: 'as in a section; the smaller value counts',
} as const;

/** Every key of a client, in the order of the documentation. */
export const clientOptions = {
  allow: {
    type: list,
    computed: 'required',
    meaning: `what it may do: \`all\`, or some of ${permissions.map((one) => `\`${one}\``).join(', ')}`,
  },
  token_sha256: {
    type: list,
    ofCredentials: true,
    meaning: 'SHA-256 of its tokens, in hexadecimal; `dbhttpd --new-token` prints one',
  },
  jwt: {
    type: { kind: 'text' },
    ofCredentials: true,
    meaning:
      'conditions for JSON Web Tokens, as `claim: value`, comma-separated or on several lines; all must hold',
  },
  may_claim: {
    type: list,
    ofCredentials: true,
    meaning: 'claims that it may state itself, in `Dbhttpd-Claims`',
  },
  sections: {
    type: list,
    computed: 'all served sections',
    meaning: 'the sections that it may use',
  },
  read_only: { type: flag, initial: 'off', meaning: 'only statements that read' },
  share: { type: integer(1, 1000), initial: '1', meaning: 'its weight where requests wait' },
  max_in_flight: {
    type: integer(1, maxRequests),
    computed: 'no limit',
    meaning: 'requests of it that may run at once, per worker',
  },
  queue: {
    type: integer(0, maxRequests),
    computed: "the section's only",
    meaning: 'requests of it that may wait, per worker',
  },
  max_rows: { ...ofSection, type: options.max_rows.type },
  max_result_bytes: { ...ofSection, type: options.max_result_bytes.type },
  statement_timeout: { ...ofSection, type: options.statement_timeout.type },
  max_wait: { ...ofSection, type: options.max_wait.type },
  expires: {
    type: date,
    ofCredentials: true,
    meaning: 'it is rejected from the beginning of this day on, in UTC',
  },
} as const satisfies Record<string, ClientOption>;

type ClientKey = keyof typeof clientOptions;
type ClientValues = {
  readonly [K in ClientKey]: ValueOf<(typeof clientOptions)[K]['type']> | null;
};

const clientKeys = Object.keys(clientOptions) as readonly ClientKey[];

/** The settings of the instance that decide whether a file of clients can be used. */
export type ClientsSetting = {
  /** The names of the sections that are served, the first one's first. */
  readonly served: readonly string[];
  /** The tokens of the first section. */
  readonly tokens: readonly string[];
  /** Whether `jwt_keys` is set. */
  readonly hasKeys: boolean;
  /** Why requests without credentials could come from elsewhere than this machine's own programs. Null: they cannot, or that is accepted. */
  readonly exposure: string | null;
};

/** A fault of a file of clients. `section`: the client's name; null: the line belongs to none. */
export type ClientFault = TextFault & { readonly section: string | null };

/** The clients of a file, or all its faults in the order of their lines. */
export type ParsedClients =
  | { readonly ok: true; readonly clients: Clients }
  | { readonly ok: false; readonly faults: readonly ClientFault[] };

const anonymousName = 'anonymous';

/** Parses the text of a file of clients. No fault contains a digest. */
export function parseClients(text: string, setting: ClientsSetting): ParsedClients {
  const faults: ClientFault[] = findStrayLines(text).map((fault) => ({ ...fault, section: null }));
  const clients: Client[] = [];
  const owners = new Map<string, string>();
  for (const digest of setting.tokens.map(digestOf)) owners.set(digest, '');
  const sections = readSections(text, formOf);
  for (const section of sections) {
    const report = (found: TextFault) =>
      faults.push({ ...found, section: section.name.slice(0, 64) });
    for (const fault of section.faults) report(fault);
    const client = parseClient(section, setting, report);
    for (const fault of findSharedTokens(section, client.tokenDigests, owners)) report(fault);
    clients.push(client);
  }
  if (sections.length === 0 && faults.length === 0) {
    faults.push({ section: null, key: null, line: null, problem: 'describes no client: [name]' });
  }
  if (faults.length > 0) {
    return { ok: false, faults: faults.sort((one, other) => (one.line ?? 0) - (other.line ?? 0)) };
  }
  const anonymous = clients.find(({ name }) => name === anonymousName) ?? null;
  const others = Object.freeze(clients.filter((client) => client !== anonymous));
  return { ok: true, clients: Object.freeze({ clients: others, anonymous }) };
}

/** The digest of a token as `token_sha256` has it. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Whether a token of the first section is a client's, too. */
export function isTokenShared({ clients }: Clients, tokens: readonly string[]): boolean {
  const digests = new Set(tokens.map(digestOf));
  return clients.some(({ tokenDigests }) => tokenDigests.some((digest) => digests.has(digest)));
}

function formOf(key: string): KeyForm {
  return key === 'jwt' ? 'verbatim' : 'plain';
}

type Report = (fault: TextFault) => void;

/** Reports every fault of a section. If there is one, its client cannot be used. */
function parseClient(section: NamedSection, setting: ClientsSetting, report: Report): Client {
  const { name, line: header } = section;
  const isAnonymous = name === anonymousName;
  const nameProblem = findNameProblem(name);
  if (nameProblem !== null) report({ key: null, line: header, problem: nameProblem });
  const values = parseEntries(section, isAnonymous, report);
  const lineOf = (key: ClientKey) =>
    section.entries.find((entry) => entry.key === key)?.line ?? null;
  const blame = (key: ClientKey, problem: string | null) => {
    if (problem !== null) report({ key, line: lineOf(key), problem });
  };
  const written = new Set([...section.entries, ...section.faults].map(({ key }) => key));
  const allow = permissionsOf(values.allow ?? []);
  if (!written.has('allow')) report({ key: 'allow', line: header, problem: 'is required' });
  blame('allow', findAllowProblem(values.allow ?? [], allow));
  if (isAnonymous) blame('allow', findExposure(allow, setting));
  if (!isAnonymous && !written.has('token_sha256') && !written.has('jwt')) {
    const problem = 'needs `token_sha256` or `jwt`: no request could belong to it';
    report({ key: null, line: header, problem });
  }
  blame('token_sha256', findDigestProblem(values.token_sha256 ?? []));
  if (written.has('jwt') && !isAnonymous && !setting.hasKeys) {
    blame('jwt', 'needs `jwt_keys` in the first section');
  }
  blame('sections', findSectionsProblem(values.sections ?? [], setting.served));
  blame('may_claim', findRepetition(values.may_claim ?? []));
  return Object.freeze({
    name,
    allow,
    tokenDigests: Object.freeze((values.token_sha256 ?? []).map((one) => one.toLowerCase())),
    conditions: Object.freeze(parseJwtLines(section.entries, report)),
    mayClaim: Object.freeze(values.may_claim ?? []),
    sections: servedOf(values.sections, setting.served),
    readOnly: values.read_only ?? false,
    share: values.share ?? 1,
    maxInFlight: values.max_in_flight,
    queue: values.queue,
    // As in a section: 0 means no limit.
    maxRows: values.max_rows || null,
    maxResultBytes: values.max_result_bytes || null,
    statementTimeoutMs: values.statement_timeout,
    maxWaitMs: values.max_wait,
    expiresAt: values.expires,
  });
}

/** The values of all keys but `jwt`. Null: not set, or faulty. */
function parseEntries(section: NamedSection, isAnonymous: boolean, report: Report): ClientValues {
  const values: Record<string, unknown> = Object.fromEntries(clientKeys.map((key) => [key, null]));
  for (const { key, value, line } of section.entries) {
    if (!isClientKey(key)) {
      report({ key, line, problem: describeUnknownKey(key) });
      continue;
    }
    const option: ClientOption = clientOptions[key];
    if (isAnonymous && option.ofCredentials === true) {
      const problem = 'cannot be set in [anonymous], whose requests have no credentials';
      report({ key, line, problem });
      continue;
    }
    if (key === 'jwt') continue;
    const parsed = parseValue(option.type, value);
    if (parsed.ok) values[key] = parsed.value;
    else report({ key, line, problem: parsed.problem });
  }
  // parseValue returns each key's type of the table, but the compiler cannot follow the loop.
  return values as ClientValues;
}

function findNameProblem(name: string): string | null {
  if (name === 'default')
    return 'is the client of the tokens of the first section: choose another name';
  if (name === '__proto__' || !/^[a-z0-9_-]{1,64}$/.test(name)) {
    return 'is not a name of a client: a-z, 0-9, - and _, at most 64';
  }
  return null;
}

function permissionsOf(words: readonly string[]): readonly Permission[] {
  if (words.includes('all')) return permissions;
  return Object.freeze(permissions.filter((one) => words.includes(one)));
}

function findAllowProblem(words: readonly string[], allow: readonly Permission[]): string | null {
  const known: readonly string[] = ['all', ...permissions];
  const unknown = words.find((word) => !known.includes(word));
  if (unknown !== undefined) {
    const near = findNearest(unknown, known);
    const hint = near === null ? `one of ${known.join(', ')}` : `did you mean \`${near}\`?`;
    return `has an unknown permission, \`${unknown.slice(0, 40)}\`: ${hint}`;
  }
  if (words.includes('all') && words.length > 1) return 'has `all` beside other permissions';
  if (allow.includes('drivers') && !allow.includes('sql')) {
    return 'has `drivers` without `sql`: drivers send SQL';
  }
  return findRepetition(words);
}

function findRepetition(words: readonly string[]): string | null {
  const repeated = words.find((word, index) => words.indexOf(word) < index);
  return repeated === undefined ? null : `names \`${repeated.slice(0, 40)}\` twice`;
}

const harmless: readonly Permission[] = ['named', 'metrics'];

function findExposure(allow: readonly Permission[], { exposure }: ClientsSetting): string | null {
  if (exposure === null || allow.every((one) => harmless.includes(one))) return null;
  return `opens more than \`named\` and \`metrics\` to requests without credentials, and ${exposure}: allow less, or set \`insecure = on\``;
}

const emptyDigest = digestOf('');

function findDigestProblem(digests: readonly string[]): string | null {
  if (!digests.every((digest) => /^[0-9a-f]{64}$/i.test(digest))) {
    return 'must be the SHA-256 of a token, 64 hexadecimal digits: `dbhttpd --new-token` prints both';
  }
  const lower = digests.map((digest) => digest.toLowerCase());
  if (lower.includes(emptyDigest)) return 'has the SHA-256 of an empty text';
  return new Set(lower).size < lower.length ? 'has the same digest twice' : null;
}

/** @param owners who has each digest so far; an empty name: the first section. The section's digests are added. */
function findSharedTokens(
  { name, entries }: NamedSection,
  digests: readonly string[],
  owners: Map<string, string>,
): readonly TextFault[] {
  const line = entries.find(({ key }) => key === 'token_sha256')?.line ?? null;
  const others = new Set<string>();
  for (const digest of digests) {
    const owner = owners.get(digest) ?? name;
    if (owner !== name) others.add(owner);
    owners.set(digest, owner);
  }
  return [...others].map((owner) => {
    const place = owner === '' ? 'the first section' : `[${owner}]`;
    return { key: 'token_sha256', line, problem: `has a token that ${place} has, too` };
  });
}

function findSectionsProblem(names: readonly string[], served: readonly string[]): string | null {
  const unknown = names.find((name) => !served.includes(name));
  if (unknown === undefined) return findRepetition(names);
  const near = findNearest(unknown, served);
  const hint = near === null ? served.join(', ') : `did you mean \`${near}\`?`;
  return `names a section that is not served, \`${unknown.slice(0, 40)}\`: ${hint}`;
}

function servedOf(
  names: readonly string[] | null,
  served: readonly string[],
): readonly string[] | null {
  return names === null ? null : Object.freeze(served.filter((one) => names.includes(one)));
}

function parseJwtLines(entries: readonly Entry[], report: Report): readonly ClaimCondition[] {
  return entries
    .filter(({ key }) => key === 'jwt')
    .flatMap(({ key, value, line }) => {
      const parsed = parseConditions(value);
      if (parsed.ok) return parsed.conditions;
      report({ key, line, problem: parsed.problem });
      return [];
    });
}

function isClientKey(key: string): key is ClientKey {
  return Object.hasOwn(clientOptions, key);
}

function describeUnknownKey(key: string): string {
  const near = findNearest(key, clientKeys);
  const hint = near === null ? '' : `: did you mean \`${near}\`?`;
  return `is not a key of a client${hint}`;
}
