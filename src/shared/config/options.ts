// The table of configuration keys: type, range, default, meaning. Validation, --check and the reference use it.
import {
  choice,
  duration,
  flag,
  integer,
  list,
  path,
  size,
  table,
  text,
  type ValueType,
} from './values.ts';

/** One key. `initial`: the default as it is written in the file. `computed`: a description of a default that is computed. */
export type Option = {
  readonly type: ValueType;
  readonly initial?: string;
  readonly computed?: string;
  readonly secret?: true;
  readonly mayBeEmpty?: true;
  /** The daemon has it once. If it serves several sections, the first section's value counts. */
  readonly ofInstance?: true;
  readonly meaning: string;
};

const second = 1000;
const hour = 3600 * second;
const kibibyte = 1024;
const gibibyte = 1024 ** 3;

/** Every key of a section, in the order of the documentation. */
export const options = {
  database: { type: text, computed: 'required', meaning: 'MySQL database' },
  host: {
    type: { kind: 'hosts' },
    computed: 'required without `socket`',
    meaning:
      'name or address of the MySQL server, or a comma-separated list of servers with the same data',
  },
  user: { type: text, computed: 'required', meaning: 'MySQL account' },
  password: {
    type: text,
    computed: 'empty',
    secret: true,
    mayBeEmpty: true,
    meaning: "the account's password; the environment variable DBHTTPD_PASSWORD overrides it",
  },
  password_file: { type: path, meaning: 'file with the password' },
  port: {
    type: integer(1, 65535),
    initial: '3306',
    meaning: "MySQL's TCP port, unless `host` names one",
  },
  socket: { type: path, meaning: "MySQL's unix socket, instead of host and port" },
  reads: {
    type: choice('primary', 'replicas'),
    initial: 'primary',
    meaning: 'the servers for requests that are declared read-only',
  },
  max_lag: {
    type: duration(0, 24 * hour),
    initial: '10s',
    meaning: 'reads avoid a replica that is further behind its primary',
  },
  failover_wait: {
    type: duration(0, 24 * hour),
    computed: "the request's deadline",
    meaning: 'the longest time that a request waits for a primary',
  },
  tls: {
    type: choice('off', 'required', 'verify'),
    initial: 'off',
    meaning: 'TLS towards MySQL; `verify` checks the chain and the host name',
  },
  tls_ca: { type: path, meaning: 'certificates to trust, PEM, for `tls = verify`' },
  tls_cert: { type: path, meaning: 'certificate shown to MySQL, PEM' },
  tls_key: { type: path, meaning: 'its private key, PEM' },
  server_public_key: {
    type: path,
    meaning:
      "PEM file with MySQL's RSA key, or with the keys of several servers; over TCP without TLS, no other key encrypts the password. Read at the start only",
  },
  init_sql: {
    type: { kind: 'sql' },
    meaning: 'session settings (time_zone, sql_mode), sent on connect and after every reset',
  },
  listen: {
    type: { kind: 'address' },
    initial: '127.0.0.1:9090',
    ofInstance: true,
    meaning: 'address:port for HTTP, `[::1]:9090`, `*:9090`, or a path; port 0: the system chooses',
  },
  listen_mode: {
    type: { kind: 'mode' },
    initial: '0660',
    ofInstance: true,
    meaning: 'mode of the unix socket',
  },
  workers: {
    type: integer(1, 256),
    computed: 'min(cores, cgroup quota, 8)',
    ofInstance: true,
    meaning: 'worker processes',
  },
  gateways: {
    type: integer(1, 1000),
    initial: '1',
    ofInstance: true,
    meaning: 'number of gateways with these settings, for the connections that `--check` counts',
  },
  pool: {
    type: integer(1, 1000),
    initial: '10',
    meaning: 'MySQL connections per worker; one more each for control and for the readiness probe',
  },
  queue: {
    type: integer(0, 1_000_000),
    initial: '1000',
    meaning: 'requests that may wait for a connection, per worker',
  },
  max_wait: {
    type: duration(1, hour),
    initial: '5s',
    meaning:
      'the longest wait for a connection; behind other requests also at most a quarter of the deadline',
  },
  coalesce: {
    type: flag,
    initial: 'off',
    meaning: 'identical reads that wait at the same time share one execution',
  },
  statement_timeout: {
    type: duration(1, 24 * hour),
    initial: '30s',
    meaning: 'the longest deadline a request may have, and the default',
  },
  drain_timeout: {
    type: duration(0, 24 * hour),
    initial: '30s',
    ofInstance: true,
    meaning: 'how long a stop waits for requests in flight',
  },
  keepalive_timeout: {
    type: duration(second, 24 * hour),
    initial: '75s',
    ofInstance: true,
    meaning: 'how long an idle client connection is kept',
  },
  buffer: {
    type: size(kibibyte, 64 * 1024 * kibibyte),
    initial: '64KiB',
    ofInstance: true,
    meaning: 'replies up to this size are sent whole, with Content-Length; longer ones stream',
  },
  compress: {
    type: flag,
    initial: 'on',
    ofInstance: true,
    meaning: 'gzip for replies of `/v1` over 1 KiB to clients that accept it',
  },
  max_request_bytes: {
    type: size(kibibyte, gibibyte),
    initial: '1MiB',
    ofInstance: true,
    meaning: 'longest URL or body',
  },
  max_rows: {
    type: integer(0, Number.MAX_SAFE_INTEGER),
    initial: '0',
    meaning: 'cut a result after this number of rows, and report it; 0: no limit',
  },
  max_result_bytes: {
    type: size(0, Number.MAX_SAFE_INTEGER),
    initial: '0',
    meaning: 'reject or reset longer results; 0: no limit',
  },
  max_columns: {
    type: integer(1, 4096),
    initial: '4096',
    meaning: 'reject results with more columns, before any row is read',
  },
  read_only: { type: flag, initial: 'off', meaning: 'only statements that read' },
  session_reset: {
    type: choice('auto', 'always'),
    initial: 'auto',
    meaning: 'reset a session unless it is provably clean, or after every request',
  },
  multi_statements: {
    type: flag,
    initial: 'on',
    meaning: 'several statements in one `/db` request',
  },
  idempotency_table: {
    type: table,
    meaning:
      'InnoDB table that keeps `Idempotency-Key`s and their replies; `--check` prints the statement that creates it',
  },
  idempotency_keep: {
    type: duration(second, 365 * 24 * hour),
    initial: '24h',
    meaning: 'how long a key is remembered',
  },
  transaction_idle_timeout: {
    type: duration(100, hour),
    initial: '10s',
    meaning: 'a transaction over several requests is rolled back after being idle for this time',
  },
  transaction_timeout: {
    type: duration(100, 24 * hour),
    initial: '60s',
    meaning: 'a transaction over several requests is rolled back at this age',
  },
  token: {
    type: list,
    secret: true,
    ofInstance: true,
    meaning:
      'bearer tokens, comma-separated; the environment variable DBHTTPD_TOKEN overrides them',
  },
  token_file: { type: path, ofInstance: true, meaning: 'file with tokens, one per line' },
  clients: {
    type: path,
    ofInstance: true,
    meaning:
      'file that describes clients, with their tokens and permissions; counts as a token for `listen` and `allow_hosts`',
  },
  jwt_keys: {
    type: path,
    ofInstance: true,
    meaning: 'file with the public keys that verify JSON Web Tokens, a JWK set',
  },
  jwt_issuer: { type: text, ofInstance: true, meaning: 'the `iss` that JSON Web Tokens must have' },
  jwt_audience: {
    type: text,
    ofInstance: true,
    meaning: 'the value that the `aud` of JSON Web Tokens must be or contain',
  },
  session_key_file: {
    type: path,
    ofInstance: true,
    meaning:
      'file with a key of at least 32 bytes, the same for all gateways, which signs consistency tokens. Read at the start only',
  },
  https_cert: { type: path, ofInstance: true, meaning: 'certificate to serve HTTPS with, PEM' },
  https_key: { type: path, ofInstance: true, meaning: 'its private key, PEM' },
  allow_hosts: {
    type: list,
    computed: 'loopback names while listening on loopback only, else any',
    ofInstance: true,
    meaning:
      'accepted `Host` names, comma-separated, without port; `*`: any. Names other than loopback need a token or HTTPS',
  },
  allow_origins: {
    type: list,
    ofInstance: true,
    meaning: 'browser origins whose pages may call by fetch() (CORS), comma-separated',
  },
  insecure: {
    type: flag,
    initial: 'off',
    ofInstance: true,
    meaning:
      'must be `on` to listen beyond loopback without a token, or for names other than loopback with neither a token nor HTTPS',
  },
  console: {
    type: flag,
    initial: 'on',
    ofInstance: true,
    meaning: 'the web page at `/console` (docs/reference/console.md)',
  },
  compat: {
    type: choice('off', 'dbslayer'),
    initial: 'off',
    ofInstance: true,
    meaning: '`dbslayer`: what clients written for DBSlayer need (docs/guides/from-dbslayer.md)',
  },
  drivers: {
    type: choice('off', 'planetscale'),
    initial: 'off',
    ofInstance: true,
    meaning:
      '`planetscale`: what `@planetscale/database` and its adapters need (docs/guides/drivers.md); they get the first section that the client may use. Needs a token',
  },
  named: {
    type: path,
    meaning: 'directory of `*.sql` files with named statements (docs/reference/named.md)',
  },
  named_watch: {
    type: flag,
    initial: 'off',
    ofInstance: true,
    meaning: 'read the named statements again when their files change, for development',
  },
  mcp: {
    type: flag,
    initial: 'off',
    ofInstance: true,
    meaning: 'the Model Context Protocol at `/mcp`, for agents (docs/guides/agents.md)',
  },
  url: {
    type: text,
    ofInstance: true,
    meaning:
      'the origin under which clients reach the gateway, such as https://db.example.com, for the metadata that agents look for. Needs `mcp = on`',
  },
  log: {
    type: path,
    computed: '`dbhttpd-<section>.log` in the log directory',
    ofInstance: true,
    meaning: 'the log file',
  },
  log_level: {
    type: choice('error', 'warn', 'info', 'debug'),
    initial: 'info',
    ofInstance: true,
    meaning: 'the least urgent lines to write',
  },
  access_log: {
    type: choice('off', 'json', 'combined'),
    initial: 'off',
    ofInstance: true,
    meaning: 'a line for every request',
  },
  slow_query: {
    type: duration(0, 24 * hour),
    initial: '1s',
    ofInstance: true,
    meaning: 'statements that take longer are logged; 0: none',
  },
  pidfile: {
    type: path,
    computed: '`dbhttpd-<section>.pid` in the run directory',
    ofInstance: true,
    meaning: "file with the supervisor's process id",
  },
  state_dir: {
    type: path,
    computed: '`/var/lib/dbhttpd` for root, else `~/.local/state/dbhttpd`',
    ofInstance: true,
    meaning:
      'directory for files that must survive a reboot: the last primary of each section with several servers',
  },
} as const satisfies Record<string, Option>;

/** The name of a key. */
export type OptionKey = keyof typeof options;

/** All keys, in the table's order. */
export const optionKeys = Object.keys(options) as readonly OptionKey[];

/** Whether the daemon has the key once. */
export function isOfInstance(key: OptionKey): boolean {
  const option: Option = options[key];
  return option.ofInstance === true;
}

/** Whether a text is a key of the table. */
export function isOptionKey(key: string): key is OptionKey {
  return Object.hasOwn(options, key);
}

type CamelCase<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : S;
type Units = { readonly duration: 'Ms'; readonly size: 'Bytes' };
type UnitOf<K extends OptionKey> = (typeof options)[K]['type']['kind'] extends keyof Units
  ? K extends `${string}_bytes`
    ? ''
    : Units[(typeof options)[K]['type']['kind']]
  : '';

/** The field of a key in the settings: in camel case, followed by the unit if there is one. */
export type FieldOf<K extends OptionKey> = K extends OptionKey
  ? `${CamelCase<K>}${UnitOf<K>}`
  : never;

const units: Readonly<Record<string, string>> = {
  duration: 'Ms',
  size: 'Bytes',
} satisfies Units;

/** The field of a key in the settings: `drain_timeout` is `drainTimeoutMs`. */
export function fieldOf<K extends OptionKey>(key: K): FieldOf<K> {
  const camelCase = key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  const unit = key.endsWith('_bytes') ? '' : (units[options[key].type.kind] ?? '');
  return `${camelCase}${unit}` as FieldOf<K>;
}
