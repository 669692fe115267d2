// A section's entries, secrets and surroundings in, a Config or every fault at once out.
// Must not know files, cluster, http or MySQL.
import { findConflicts } from './config-conflicts.ts';
import type { CredentialFiles, KeyPair, TlsTexts } from './credentials.ts';
import type { Section, TextFault } from './ini-section.ts';
import { isLocal, type ListenAddress } from './listen-address.ts';
import { parseValue, type ValueOf } from './option-values.ts';
import { isOptionKey, type Option, type OptionKey, optionKeys, options } from './options.ts';

/** The effective settings of one section; durations in ms, sizes in bytes. `null` means: not set. */
export type Config = {
  readonly section: string;
  readonly configPath: string;
  readonly database: string;
  /** Empty when `socket` is set. */
  readonly host: string;
  readonly user: string;
  readonly password: string;
  readonly port: number;
  readonly socket: string | null;
  readonly tls: 'off' | 'required' | 'verify';
  readonly tlsCa: string | null;
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
  /** What stood in the files that `tls_ca`, `tls_cert` and `tls_key` name. */
  readonly tlsTexts: TlsTexts;
  readonly initSql: string | null;
  readonly listen: ListenAddress;
  readonly listenMode: number;
  readonly workers: number;
  readonly pool: number;
  readonly queue: number;
  readonly coalesce: boolean;
  readonly statementTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly keepaliveTimeoutMs: number;
  readonly bufferBytes: number;
  readonly maxRequestBytes: number;
  readonly maxRows: number;
  readonly maxResultBytes: number;
  readonly readOnly: boolean;
  readonly sessionReset: 'auto' | 'always';
  readonly multiStatements: boolean;
  readonly tokens: readonly string[];
  readonly httpsCert: string | null;
  readonly httpsKey: string | null;
  /** What stood in the files that `https_cert` and `https_key` name; null: plain HTTP. */
  readonly httpsTexts: KeyPair | null;
  /** What is read anew on SIGHUP. */
  readonly credentialFiles: CredentialFiles;
  /** Accepted Host names in lower case without port, IPv6 in brackets; null: any. */
  readonly allowHosts: readonly string[] | null;
  readonly allowOrigins: readonly string[];
  readonly insecure: boolean;
  readonly compat: 'off' | 'dbslayer';
  readonly console: boolean;
  readonly log: string;
  readonly logLevel: 'error' | 'warn' | 'info' | 'debug';
  readonly accessLog: 'off' | 'json' | 'combined';
  readonly slowQueryMs: number;
  readonly pidfile: string;
};

type Defaulted<O extends Option> = O['initial'] extends string ? never : null;

/** Every key's parsed value; null for one that is not set and has no default in the table. */
export type Values = {
  readonly [K in OptionKey]: ValueOf<(typeof options)[K]['type']> | Defaulted<(typeof options)[K]>;
};

/** What the file does not hold: where it is, what stands in other places, and this machine's defaults. */
export type Surroundings = {
  readonly section: string;
  readonly configPath: string;
  /** From the environment or password_file, in this order; null: neither. */
  readonly password: string | null;
  readonly tokens: readonly string[] | null;
  readonly tlsTexts: TlsTexts | null;
  readonly httpsTexts: KeyPair | null;
  readonly credentialFiles: CredentialFiles;
  readonly workers: number;
  readonly log: string;
  readonly pidfile: string;
};

/** Parses and defaults every entry; faults are collected, never thrown. */
export function parseEntries(section: Section): { values: Values; faults: readonly TextFault[] } {
  const faults = [...section.faults];
  const values: Record<string, unknown> = {};
  for (const key of optionKeys) {
    const { type, initial } = options[key];
    const parsed = initial === null ? null : parseValue(type, initial);
    values[key] = parsed?.ok === true ? parsed.value : null;
  }
  for (const { key, value, line } of section.entries) {
    if (!isOptionKey(key)) {
      faults.push({ key, line, problem: 'is no key of dbhttpd' });
      continue;
    }
    const option: Option = options[key];
    const isBlank = value === '' && option.mayBeEmpty === true;
    const parsed = isBlank ? ({ ok: true, value } as const) : parseValue(option.type, value);
    if (parsed.ok) values[key] = parsed.value;
    else faults.push({ key, line, problem: parsed.problem });
  }
  // The table's types are what parseValue returned key by key; the compiler cannot follow the loop.
  return { values: values as Values, faults };
}

/** The keys that a section writes down, faulty ones included. */
export function writtenKeys(section: Section): ReadonlySet<string> {
  const faulty = section.faults.flatMap((fault) => (fault.key === null ? [] : [fault.key]));
  return new Set([...section.entries.map((entry) => entry.key), ...faulty]);
}

/** Composes the settings of one section from its values, frozen; combinations are judged here, all at once. */
export function composeConfig(
  values: Values,
  written: ReadonlySet<string>,
  around: Surroundings,
): { config: Config; faults: readonly TextFault[] } {
  const tokens = around.tokens ?? values.token ?? [];
  const config: Config = Object.freeze({
    section: around.section,
    configPath: around.configPath,
    database: values.database ?? '',
    host: values.host ?? '',
    user: values.user ?? '',
    password: around.password ?? values.password ?? '',
    port: values.port,
    socket: values.socket,
    tls: values.tls,
    tlsCa: values.tls_ca,
    tlsCert: values.tls_cert,
    tlsKey: values.tls_key,
    tlsTexts: Object.freeze(around.tlsTexts ?? { ca: null, cert: null, key: null }),
    initSql: values.init_sql,
    listen: Object.freeze(values.listen),
    listenMode: values.listen_mode,
    workers: values.workers ?? around.workers,
    pool: values.pool,
    queue: values.queue,
    coalesce: values.coalesce,
    statementTimeoutMs: values.statement_timeout,
    drainTimeoutMs: values.drain_timeout,
    keepaliveTimeoutMs: values.keepalive_timeout,
    bufferBytes: values.buffer,
    maxRequestBytes: values.max_request_bytes,
    maxRows: values.max_rows,
    maxResultBytes: values.max_result_bytes,
    readOnly: values.read_only,
    sessionReset: values.session_reset,
    multiStatements: values.multi_statements,
    tokens: Object.freeze([...tokens]),
    httpsCert: values.https_cert,
    httpsKey: values.https_key,
    httpsTexts: around.httpsTexts,
    credentialFiles: around.credentialFiles,
    allowHosts: acceptedHosts(values),
    allowOrigins: Object.freeze((values.allow_origins ?? []).map((origin) => origin.toLowerCase())),
    insecure: values.insecure,
    compat: values.compat,
    console: values.console,
    log: values.log ?? around.log,
    logLevel: values.log_level,
    accessLog: values.access_log,
    slowQueryMs: values.slow_query,
    pidfile: values.pidfile ?? around.pidfile,
  });
  return { config, faults: findConflicts(config, values, written) };
}

function acceptedHosts({ allow_hosts: hosts, listen }: Values): readonly string[] | null {
  if (hosts !== null) {
    return hosts.includes('*') ? null : Object.freeze(hosts.map((host) => host.toLowerCase()));
  }
  // A unix socket is out of a browser's reach: no name needs to be refused there.
  if (listen.kind === 'unix' || !isLocal(listen)) return null;
  const own = listen.host?.includes(':') ? `[${listen.host}]` : `${listen.host}`;
  return Object.freeze([...new Set(['localhost', '127.0.0.1', '[::1]', own.toLowerCase()])]);
}
