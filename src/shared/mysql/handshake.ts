// Guards of mysql2's handshake. Without them mysql2 reads without limit, throws, asks for query attributes that a server does not offer, and
// gives the password to a server that sends an unknown key for it.
import mysql from 'mysql2';
import { findKey } from '../server-keys.ts';
import { ServerFault } from './connect-failure.ts';
import { headerBytes } from './framing.ts';

/** A greeting, a switch of the method, a key and a refusal are far shorter together. */
const maxHandshakeBytes = 64 * 1024;

/** mysql2's parser, which assembles packets of any announced length. */
export type HandshakeParser = { execute(chunk: Buffer): void };

/** A greeting, at most one switch of the method, a key, a refusal or OK: a login takes far fewer. */
const maxHandshakePackets = 16;

/**
 * Reads the headers of the packets of a handshake.
 * @returns for each read, what breaks the protocol; null: nothing does
 */
function createHeaderCheck(): (chunk: Buffer) => string | null {
  let length = 0;
  let headerFill = 0;
  let payloadLeft = 0;
  let packets = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (payloadLeft > 0) {
        const taken = Math.min(payloadLeft, chunk.length - at);
        payloadLeft -= taken;
        at += taken;
        continue;
      }
      if (headerFill < 3) length += (chunk[at] as number) << (8 * headerFill);
      at += 1;
      headerFill = (headerFill + 1) % headerBytes;
      if (headerFill > 0) continue;
      packets += 1;
      if (packets > maxHandshakePackets) return 'the login did not end after 16 packets';
      if (length > maxHandshakeBytes) return packets === 1 ? notMysql : longPacket;
      payloadLeft = length;
      length = 0;
    }
    return null;
  };
}

const notMysql = "the server speaks another protocol than MySQL's";
const longPacket =
  'the server announced a packet of more than 64 KiB before the login was complete';

/**
 * Limits the bytes that mysql2 reads during the handshake, and catches the exceptions of its parser.
 * @param fail called at most once for each read, with the reason to end the connection
 */
export function guardHandshake(
  connection: { packetParser: HandshakeParser },
  fail: (fault: ServerFault) => void,
): void {
  const parser = connection.packetParser;
  const findFault = createHeaderCheck();
  let bytes = 0;
  connection.packetParser = {
    execute: (chunk) => {
      const fault = findFault(chunk);
      if (fault !== null) {
        fail(new ServerFault('PROTOCOL_VIOLATION', fault));
        return;
      }
      bytes += chunk.length;
      if (bytes > maxHandshakeBytes) {
        const message = 'the server sent more than 64 KiB before the login was complete';
        fail(new ServerFault('PROTOCOL_VIOLATION', message));
        return;
      }
      try {
        parser.execute(chunk);
      } catch (cause) {
        const message = 'the packets of the login could not be read';
        fail(new ServerFault('PROTOCOL_VIOLATION', message, { cause }));
      }
    },
  };
}

/** CLIENT_QUERY_ATTRIBUTES */
const queryAttributes = 1 << 27;

/** Internals of mysql2, which a test pins: the handshake in progress, and the server's capabilities. */
export type HandshakingConnection = {
  readonly _command: {
    clientFlags: number;
    /** Null until the greeting has been read. */
    readonly handshake: { readonly serverVersion: string } | null;
  };
  serverCapabilityFlags: number;
};

/**
 * mysql2 asks for query attributes whatever the server offers, before TLS and after it. A proxy may trust the flag and expect two bytes
 * before each statement. MariaDB has no query attributes, even if it uses the bit one day. So this clears the flag when mysql2 stores
 * the server's capabilities, which is before it answers the greeting.
 * @returns whether they were negotiated; valid after the handshake
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

/** Answers that ask for the RSA key: MySQL's documentation of the plugins, "request_public_key". */
const keyRequests = { caching_sha2_password: 0x02, sha256_password: 0x01 } as const;
/** caching_sha2_password, "fast_auth_success": the server remembers the password's hash. */
const isRemembered = Buffer.from([0x03]);

/** The settings that allow the password, for messages. */
export const waysToSendPassword =
  "set server_public_key (a file with the server's key), tls, or socket";
const noKey = `the server wants the password under a key of its own, which another process could have sent: ${waysToSendPassword}`;
const otherKey = 'the server wants the password under a key that server_public_key does not hold';

type Plugins = NonNullable<mysql.ConnectionOptions['authPlugins']>;
type Plugin = Plugins[string];

/** Settings of the password's guard on a plain connection over TCP. */
export type PasswordGuard = {
  /** PEM texts: the keys that the server may have. */
  readonly serverKeys: readonly string[];
  /** Called if the login succeeds only because the server remembers the password, and there is no key otherwise. */
  readonly onRemembered: () => void;
};

/**
 * The methods of authentication for connections without TLS over TCP. If the server's RSA key is not one of `serverKeys`, the login ends
 * with a ServerFault. That includes loopback: any process of the machine may have taken MySQL's port. A login that the server remembers
 * needs no key.
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

/** The gateway's own copy of the key, not the server's bytes. */
function pinned(sent: Buffer, serverKeys: readonly string[]): Buffer {
  const key = findKey(sent.toString('latin1'), serverKeys);
  if (key === null) throw new ServerFault('INSECURE_PASSWORD', otherKey);
  return Buffer.from(key);
}
