// Keeps the password from a server that sends a key of its own for it over a plain connection, which any process may have answered.
// Must not know how the methods work, only which answer of theirs asks for the key.
import mysql from 'mysql2';
import { findKey } from '../server-keys.ts';
import { ServerFault } from './server-fault.ts';

/** What asks for the RSA key: MySQL's documentation of the plugins, "request_public_key". */
const keyRequests = { caching_sha2_password: 0x02, sha256_password: 0x01 } as const;
/** caching_sha2_password, "fast_auth_success": the server remembers the password's hash, and asks for no more. */
const isRemembered = Buffer.from([0x03]);

/** What an operator can do about it. */
export const waysToSendPassword =
  "set server_public_key (a file with the server's key), tls, or socket";
const noKey = `the server wants the password under a key of its own, which another process could have sent: ${waysToSendPassword}`;
const otherKey = 'the server wants the password under a key that server_public_key does not hold';

type Plugins = NonNullable<mysql.ConnectionOptions['authPlugins']>;
type Plugin = Plugins[string];

/** What decides about the password on a plain connection over TCP. */
export type PasswordGuard = {
  /** PEM texts: the keys that the server may have. */
  readonly serverKeys: readonly string[];
  /** The server let us in only because it remembers the password, and there is no key for when it does not. */
  readonly onRemembered: () => void;
};

/**
 * The methods of authentication for connections without TLS over TCP. The exchange of an RSA key ends with a ServerFault unless the
 * server's key is one of `serverKeys`. That holds for loopback too: any process of the machine may have taken MySQL's port. A login
 * that the server remembers needs no key, and works.
 */
export function plainTcpPlugins(guard: PasswordGuard): Plugins {
  const plugins = mysql.authPlugins;
  return {
    caching_sha2_password: guarded(
      plugins.caching_sha2_password({}),
      keyRequests.caching_sha2_password,
      guard,
    ),
    sha256_password: guarded(plugins.sha256_password({}), keyRequests.sha256_password, guard),
  };
}

function guarded(
  plugin: Plugin,
  keyRequest: number,
  { serverKeys, onRemembered }: PasswordGuard,
): Plugin {
  return (metadata) => {
    const answer = plugin(metadata);
    let awaitsKey = false;
    return (data) => {
      const given = answer(awaitsKey ? pinned(data, serverKeys) : data);
      awaitsKey = Buffer.isBuffer(given) && given.length === 1 && given[0] === keyRequest;
      if (awaitsKey && serverKeys.length === 0) throw new ServerFault('INSECURE_PASSWORD', noKey);
      if (serverKeys.length === 0 && isRemembered.equals(data)) onRemembered();
      return given;
    };
  };
}

/** Our own copy of the key: nothing that the server has sent is used. */
function pinned(sent: Buffer, serverKeys: readonly string[]): Buffer {
  const key = findKey(sent.toString('latin1'), serverKeys);
  if (key === null) throw new ServerFault('INSECURE_PASSWORD', otherKey);
  return Buffer.from(key);
}
