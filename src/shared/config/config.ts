// The settings of a section: composed from its entries and its surroundings, and frozen.
import { findNearest } from '../nearest-name.ts';
import { type Candidates, candidatesOf, isLocal } from './addresses.ts';
import type { CredentialFiles, Credentials } from './credentials.ts';
import type { Section, TextFault } from './ini-section.ts';
import {
  type FieldOf,
  fieldOf,
  isOfInstance,
  isOptionKey,
  type Option,
  type OptionKey,
  optionKeys,
  options,
} from './options.ts';
import { parseValue, type ValueOf } from './values.ts';

type Defaulted<O extends Option> = O extends { readonly initial: string } ? never : null;

/** Every key's parsed value. Null: not set, and without a default in the table. */
export type Values = {
  readonly [K in OptionKey]: ValueOf<(typeof options)[K]['type']> | Defaulted<(typeof options)[K]>;
};

/** Settings that do not follow from the table alone: other files, other keys and this machine decide them. */
type Composed = Credentials & {
  readonly section: string;
  readonly configPath: string;
  readonly database: string;
  /** Its servers, in the order of `host` and then of `-s`. */
  readonly candidates: Candidates;
  readonly user: string;
  readonly workers: number;
  /** The contents of `session_key_file`, in base64. */
  readonly sessionKey: string | null;
  /** The keys of the file `server_public_key`, as PEM texts. */
  readonly serverKeys: readonly string[];
  /** The files that SIGHUP reads again. */
  readonly credentialFiles: CredentialFiles;
  /** Accepted Host names in lower case without port, IPv6 in brackets. Null: any. */
  readonly allowHosts: readonly string[] | null;
  readonly allowOrigins: readonly string[];
  readonly log: string;
  readonly pidfile: string;
  readonly stateDir: string;
};

/** Keys whose values reach the settings by another way: names of servers, and places of credentials. */
const elsewhere = ['password_file', 'token', 'token_file', 'host', 'port', 'socket'] as const;

type Tabled = {
  readonly [K in Exclude<OptionKey, (typeof elsewhere)[number]> as FieldOf<K>]: Values[K];
};

/** The effective settings of one section, with a field for each key of the table (see `fieldOf`). Null: not set. */
export type Config = Composed & Omit<Tabled, keyof Composed>;

/** The sections that one daemon serves. The first is the instance's. */
export type Sections = readonly [Config, ...Config[]];

type FromValues = 'database' | 'candidates' | 'user' | 'allowHosts' | 'allowOrigins';
type OrFromValues = 'password' | 'tokens' | 'tlsTexts';

/** The sources beside the section: its file, the contents of other files, the environment, and this machine's defaults. */
export type Surroundings = Omit<Composed, FromValues | OrFromValues> & {
  readonly [K in OrFromValues]: Composed[K] | null;
};

/** Parses every entry and adds the defaults. Collects faults and throws none. */
export function parseEntries(section: Section): { values: Values; faults: readonly TextFault[] } {
  const faults = [...section.faults];
  const values: Record<string, unknown> = {};
  for (const key of optionKeys) {
    const { type, initial }: Option = options[key];
    const parsed = initial === undefined ? null : parseValue(type, initial);
    values[key] = parsed?.ok === true ? parsed.value : null;
  }
  for (const { key, value, line } of section.entries) {
    if (!isOptionKey(key)) {
      faults.push({ key, line, problem: describeUnknownKey(key) });
      continue;
    }
    const option: Option = options[key];
    const isBlank = value === '' && option.mayBeEmpty === true;
    const parsed = isBlank ? ({ ok: true, value } as const) : parseValue(option.type, value);
    if (parsed.ok) values[key] = parsed.value;
    else faults.push({ key, line, problem: parsed.problem });
  }
  // parseValue returns each key's type of the table, but the compiler cannot follow the loop.
  return { values: values as Values, faults };
}

/** The keys that a section contains, including faulty ones. */
export function writtenKeys(section: Section): ReadonlySet<string> {
  const faulty = section.faults.flatMap((fault) => (fault.key === null ? [] : [fault.key]));
  return new Set([...section.entries.map((entry) => entry.key), ...faulty]);
}

/** The values of a section that is served beside the first: what the daemon has once is the first section's. */
export function withInstance(values: Values, first: Values): Values {
  const shared = optionKeys.filter(isOfInstance).map((key) => [key, first[key]]);
  return { ...values, ...Object.fromEntries(shared) };
}

/** Composes the settings of one section from its values, frozen. */
export function composeConfig(values: Values, around: Surroundings): Config {
  const tokens = around.tokens ?? values.token ?? [];
  const own = {
    database: values.database ?? '',
    candidates: candidatesOf(values.host, values.port, values.socket),
    user: values.user ?? '',
    password: around.password ?? values.password ?? '',
    workers: values.workers ?? around.workers,
    tokens: Object.freeze([...tokens]),
    tlsTexts: Object.freeze(around.tlsTexts ?? { ca: null, cert: null, key: null }),
    serverKeys: Object.freeze([...around.serverKeys]),
    allowHosts: acceptedHosts(values),
    allowOrigins: Object.freeze((values.allow_origins ?? []).map((origin) => origin.toLowerCase())),
    log: values.log ?? around.log,
    pidfile: values.pidfile ?? around.pidfile,
    stateDir: values.state_dir ?? around.stateDir,
  };
  return Object.freeze({ ...around, ...tabled(values), ...own });
}

function tabled(values: Values): Tabled {
  const fields: Record<string, unknown> = {};
  for (const key of optionKeys) {
    const value = values[key];
    if (!(elsewhere as readonly OptionKey[]).includes(key))
      fields[fieldOf(key)] = Object.freeze(value);
  }
  // Each field has its key's value, but the compiler cannot follow the loop.
  return fields as Tabled;
}

/** The names that `Host` may have, as in the settings. */
export function acceptedHosts({
  allow_hosts: hosts,
  listen,
}: Pick<Values, 'allow_hosts' | 'listen'>): readonly string[] | null {
  if (hosts !== null) {
    return hosts.includes('*') ? null : Object.freeze(hosts.map((host) => host.toLowerCase()));
  }
  // Browsers cannot reach a unix socket, so no name has to be rejected there.
  if (listen.kind === 'unix' || !isLocal(listen)) return null;
  const own = listen.host?.includes(':') ? `[${listen.host}]` : `${listen.host}`;
  return Object.freeze([...new Set(['localhost', '127.0.0.1', '[::1]', own.toLowerCase()])]);
}

function describeUnknownKey(key: string): string {
  const near = findNearest(key, optionKeys);
  const hint = near === null ? '' : `: did you mean \`${near}\`?`;
  return `is not a key of dbhttpd${hint}`;
}
