// INI text and a section name in, a Config or every fault at once out.
// Must not know cluster, http or MySQL.

/** Where HTTP is served. Port 0 lets the system choose. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly host: string | null; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

/** The effective settings of one section; durations in ms, sizes in bytes. `null` means: not set. */
export type Config = {
  readonly section: string;
  readonly configPath: string;
  readonly database: string;
  readonly host: string;
  readonly user: string;
  readonly password: string;
  readonly port: number;
  readonly socket: string | null;
  readonly tls: 'off' | 'required' | 'verify';
  readonly tlsCa: string | null;
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
  readonly initSql: string | null;
  readonly listen: ListenAddress;
  readonly listenMode: number;
  readonly workers: number;
  readonly pool: number;
  readonly queue: number;
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
  /** Accepted Host names in lower case without port; null: any. */
  readonly allowHosts: readonly string[] | null;
  readonly allowOrigins: readonly string[];
  readonly insecure: boolean;
  readonly console: boolean;
  readonly log: string;
  readonly logLevel: 'error' | 'warn' | 'info' | 'debug';
  readonly accessLog: 'off' | 'json' | 'combined';
  readonly slowQueryMs: number;
  readonly pidfile: string;
};
