// What mysql2 may not do while it shakes hands: read without bound, throw, ask for query attributes that a server does not offer, or give
// the password to a server that sends a key of its own for it.
import mysql from 'mysql2';
import { findKey } from '../server-keys.ts';
import { ServerFault } from './connect-failure.ts';

/** A greeting, a switch of the method, a key, a refusal: far less than this in all. */
const maxHandshakeBytes = 64 * 1024;

/** mysql2's parser, which assembles packets of any announced length. */
export type HandshakeParser = { execute(chunk: Buffer): void };

/**
 * Puts a guard before the parser of a connection that is being opened.
 * @param fail told, at most once for each read, why the connection must end
 */
export function guardHandshake(
  connection: { packetParser: HandshakeParser },
  fail: (fault: ServerFault) => void,
): void {
  const parser = connection.packetParser;
  let bytes = 0;
  connection.packetParser = {
    execute: (chunk) => {
      bytes += chunk.length;
      if (bytes > maxHandshakeBytes) {
        const message = 'the server sent more than 64 KiB before it had let us in';
        fail(new ServerFault('PROTOCOL_VIOLATION', message));
        return;
      }
      try {
        parser.execute(chunk);
      } catch (cause) {
        const message = 'what the server sent before it had let us in could not be read';
        fail(new ServerFault('PROTOCOL_VIOLATION', message, { cause }));
      }
    },
  };
}

/** CLIENT_QUERY_ATTRIBUTES */
const queryAttributes = 1 << 27;

/** What mysql2 keeps to itself, and a test pins: the handshake under way, and where it notes what the server offers. */
export type HandshakingConnection = {
  readonly _command: {
    clientFlags: number;
    /** Null until the greeting has been read. */
    readonly handshake: { readonly serverVersion: string } | null;
  };
  serverCapabilityFlags: number;
};

/**
 * mysql2 asks for them whatever the server offers, before TLS as behind it. A proxy may take our word for it, and read each
 * statement with two bytes before it; MariaDB knows none, whatever its bit says one day. So the wish is taken back while
 * mysql2 notes the offer, which is before it answers the greeting.
 * @returns whether they were negotiated, once the handshake is over
 */
export function keepToOffer(connection: HandshakingConnection): () => boolean {
  const handshake = connection._command;
  let offered = 0;
  Object.defineProperty(connection, 'serverCapabilityFlags', {
    get: () => offered,
    set: (flags: number) => {
      offered = flags;
      const isMariadb = /mariadb/i.test(handshake.handshake?.serverVersion ?? '');
      if (isMariadb || (flags & queryAttributes) === 0) handshake.clientFlags &= ~queryAttributes;
    },
  });
  return () => (offered & handshake.clientFlags & queryAttributes) !== 0;
}

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
