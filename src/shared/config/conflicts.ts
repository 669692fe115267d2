// Conflicts: combinations of settings that make no sense, each with the key to change.
import { normalize } from 'node:path';
import { isAllowed } from '../clients/client.ts';
import { findRepeated, isLocal, isLoopbackName } from './addresses.ts';
import type { Config, Values } from './config.ts';
import { isBearerToken } from './credentials.ts';
import type { OptionKey } from './options.ts';

type Rule = readonly [broken: boolean, key: OptionKey, problem: string];

/** Every broken rule. @param written the keys that the file contains, because a default conflicts with nothing */
export function findConflicts(
  config: Config,
  values: Values,
  written: ReadonlySet<string>,
): readonly { readonly key: OptionKey; readonly problem: string }[] {
  const rules: readonly Rule[] = [
    ...required(written),
    ...towardsMysql(config, values, written),
    ...towardsClients(config, values, written),
    ...ofDrivers(config, written),
    ...ofJwt(written),
    ...ofAgents(config),
    ...ofFiles(config, values),
    [
      config.readOnly && config.idempotencyTable !== null,
      'idempotency_table',
      'is written to: `read_only` cannot be on',
    ],
    [
      !written.has('idempotency_table') && written.has('idempotency_keep'),
      'idempotency_keep',
      'needs `idempotency_table`',
    ],
    [
      config.idempotencyTable !== null && config.idempotencyKeepMs < config.statementTimeoutMs,
      'idempotency_keep',
      'is shorter than `statement_timeout`: a key would be forgotten while its request runs, and the request could be executed twice',
    ],
  ];
  return rules.filter(([isBroken]) => isBroken).map(([, key, problem]) => ({ key, problem }));
}

/** The pidfile and the files that an instance keeps beside it. */
function besides({ pidfile }: Config): readonly string[] {
  return ['', '.lock', '.drain', '.sock', '.commits'].map((suffix) => `${pidfile}${suffix}`);
}

function required(written: ReadonlySet<string>): readonly Rule[] {
  return [
    [!written.has('database'), 'database', 'is required'],
    [!written.has('host') && !written.has('socket'), 'host', 'is required (or `socket`)'],
    [!written.has('user'), 'user', 'is required'],
  ];
}

function towardsMysql(
  config: Config,
  values: Values,
  written: ReadonlySet<string>,
): readonly Rule[] {
  const { candidates, tls, tlsCa, tlsCert, tlsKey, serverPublicKey } = config;
  const { host: hosts, socket } = values;
  // MySQL's own option files contain `localhost` beside a socket.
  const isOwnHost = hosts?.every(({ host, port }) => host === 'localhost' && port === null) ?? true;
  const [repeated] = socket === null ? findRepeated(candidates) : [];
  const isPlain = tls === 'off';
  return [
    [repeated !== undefined, 'host', `names ${repeated} more than once`],
    [socket !== null && !isOwnHost, 'socket', 'and `host` cannot both be set'],
    [socket !== null && written.has('port'), 'socket', 'and `port` cannot both be set'],
    [
      values.password !== null && values.password_file !== null,
      'password_file',
      'and `password` cannot both be set',
    ],
    [
      serverPublicKey !== null && (!isPlain || socket !== null),
      'server_public_key',
      'is for a password over TCP without TLS: it does nothing with `tls` or `socket`',
    ],
    [isPlain && tlsCa !== null, 'tls_ca', 'needs `tls = verify`'],
    [tls === 'required' && tlsCa !== null, 'tls_ca', 'checks nothing without `tls = verify`'],
    [isPlain && tlsCert !== null, 'tls_cert', 'needs `tls = required` or `tls = verify`'],
    [isPlain && tlsKey !== null, 'tls_key', 'needs `tls = required` or `tls = verify`'],
    [tlsCert !== null && !written.has('tls_key'), 'tls_cert', 'needs `tls_key`'],
    [tlsKey !== null && !written.has('tls_cert'), 'tls_key', 'needs `tls_cert`'],
  ];
}

function towardsClients(
  config: Config,
  values: Values,
  written: ReadonlySet<string>,
): readonly Rule[] {
  const { listen, insecure, httpsCert, httpsKey, tokens } = config;
  const mayBeGuarded = hasTokens(config, written) || written.has('clients');
  const hosts = values.allow_hosts ?? [];
  return [
    [
      !isLocal(listen) && !mayBeGuarded && !insecure,
      'listen',
      'is beyond loopback: set `token`, `token_file` or `clients`, or `insecure = on`',
    ],
    [
      listen.kind === 'tcp' && written.has('listen_mode'),
      'listen_mode',
      'needs a path in `listen`',
    ],
    [
      values.token !== null && values.token_file !== null,
      'token_file',
      'and `token` cannot both be set',
    ],
    [!tokens.every(isBearerToken), 'token', 'has a character that a bearer token cannot have'],
    [httpsCert !== null && !written.has('https_key'), 'https_cert', 'needs `https_key`'],
    [httpsKey !== null && !written.has('https_cert'), 'https_key', 'needs `https_cert`'],
    [!hosts.every(isHost), 'allow_hosts', 'must hold names or addresses without port'],
    [
      !mayBeGuarded && httpsCert === null && !insecure && !hosts.every(isLoopbackName),
      'allow_hosts',
      'names other than loopback: web pages could run SQL under them, because browsers do not send the origin over plain ' +
        'HTTP. Set `token`, `token_file` or `clients`, or `https_cert` and `https_key`, or `insecure = on`',
    ],
    [
      !(values.allow_origins ?? []).every(isOrigin),
      'allow_origins',
      'must hold origins such as https://app.example',
    ],
  ];
}

/** A file that an instance writes must not be another of its files: it would overwrite a configuration or a key. */
function ofFiles(config: Config, values: Values): readonly Rule[] {
  const { log, listen } = config;
  const read = filesToRead(config, values);
  const beside = besides(config);
  const isReadToo = 'is the same file as the configuration, or as one that it names';
  return [
    [read.has(log), 'log', isReadToo],
    [beside.includes(log), 'pidfile', 'is, or has beside it, the same file as `log`'],
    [beside.some((path) => read.has(path)), 'pidfile', isReadToo],
    [
      listen.kind === 'unix' && [...beside, log].includes(listen.path),
      'listen',
      'is the same file as `log`, `pidfile` or one beside it',
    ],
    [listen.kind === 'unix' && read.has(listen.path), 'listen', isReadToo],
  ];
}

function filesToRead({ configPath }: Config, values: Values): ReadonlySet<string | null> {
  const { password_file, token_file, clients, jwt_keys } = values;
  const { session_key_file, server_public_key } = values;
  const { tls_ca, tls_cert, tls_key, https_cert, https_key } = values;
  const named = [
    password_file,
    token_file,
    clients,
    jwt_keys,
    session_key_file,
    server_public_key,
    tls_ca,
    tls_cert,
    tls_key,
  ];
  return new Set([normalize(configPath), ...named, https_cert, https_key]);
}

/** Whether the first section has tokens, or says where they are. */
function hasTokens({ tokens }: Config, written: ReadonlySet<string>): boolean {
  return tokens.length > 0 || written.has('token') || written.has('token_file');
}

/** Drivers put values into the text and escape them with backslashes. */
function ofDrivers(config: Config, written: ReadonlySet<string>): readonly Rule[] {
  const { drivers, initSql, access } = config;
  // A file of clients that cannot be used has its own faults.
  const isClientAllowed =
    access?.clients.clients.some(
      (client) => isAllowed(client, 'drivers') && client.tokenDigests.length > 0,
    ) ?? written.has('clients');
  return [
    [
      drivers !== 'off' && !hasTokens(config, written) && !isClientAllowed,
      'drivers',
      'needs `token`, `token_file` or a client with `drivers` and `token_sha256`: drivers have no other password to send',
    ],
    [
      drivers !== 'off' && /NO_BACKSLASH_ESCAPES/i.test(initSql ?? ''),
      'drivers',
      'cannot be on if `init_sql` sets NO_BACKSLASH_ESCAPES: drivers escape values with backslashes, which would then have no effect',
    ],
  ];
}

function ofJwt(written: ReadonlySet<string>): readonly Rule[] {
  const [keys, issuer, audience] = ['jwt_keys', 'jwt_issuer', 'jwt_audience'].map((key) =>
    written.has(key),
  );
  return [
    [
      keys === true && !written.has('clients'),
      'jwt_keys',
      'needs `clients`: its `jwt` lines say to which client a token belongs',
    ],
    [keys === true && issuer === false, 'jwt_keys', 'needs `jwt_issuer`'],
    [keys === true && audience === false, 'jwt_keys', 'needs `jwt_audience`'],
    [keys === false && issuer === true, 'jwt_issuer', 'needs `jwt_keys`'],
    [keys === false && audience === true, 'jwt_audience', 'needs `jwt_keys`'],
  ];
}

function ofAgents({ mcp, url }: Config): readonly Rule[] {
  return [
    [url !== null && !mcp, 'url', 'needs `mcp = on`'],
    [
      url !== null && !isOrigin(url),
      'url',
      'must be an origin such as https://db.example.com, without a path',
    ],
  ];
}

function isHost(text: string): boolean {
  return text === '*' || /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$/.test(text);
}

function isOrigin(text: string): boolean {
  const isWeb = /^https?:\/\/[^/]+$/i.test(text) && URL.canParse(text);
  return isWeb && new URL(text).origin === text.toLowerCase();
}
