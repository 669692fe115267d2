// Keeps the password from a server that sends its own key for it over a line that anybody may have been on.
// Must not know how the methods work, only which answer of theirs asks for the key.
import { isIP } from 'node:net';
import mysql from 'mysql2';
import { ServerFault } from './server-fault.ts';

/** What asks for the RSA key: MySQL's documentation of the plugins, "request_public_key". */
const keyRequests = { caching_sha2_password: 0x02, sha256_password: 0x01 } as const;

const refused =
  'the server wants the password under a key of its own, which anybody between here and there could have sent: ' +
  'set tls, or socket, or have the account use another plugin';

type Plugins = NonNullable<mysql.ConnectionOptions['authPlugins']>;
type Plugin = Plugins[string];

/** mysql2's own: the socket of the connection that a plugin works for. */
type Connected = { readonly stream: { readonly remoteAddress?: string } };

/**
 * The methods of authentication for connections without TLS over TCP: those with a key exchange end with a ServerFault
 * where the peer is another machine. A login that the server has cached needs no key, and works.
 */
export function plainTcpPlugins(): Plugins {
  const plugins = mysql.authPlugins;
  return {
    caching_sha2_password: guarded(
      plugins.caching_sha2_password({}),
      keyRequests.caching_sha2_password,
    ),
    sha256_password: guarded(plugins.sha256_password({}), keyRequests.sha256_password),
  };
}

function guarded(plugin: Plugin, keyRequest: number): Plugin {
  return (metadata) => {
    const answer = plugin(metadata);
    return (data) => {
      const given = answer(data);
      const asksForKey = Buffer.isBuffer(given) && given.length === 1 && given[0] === keyRequest;
      const { remoteAddress } = (metadata.connection as unknown as Connected).stream;
      if (asksForKey && !isLoopback(remoteAddress ?? '')) {
        throw new ServerFault('INSECURE_PASSWORD', refused);
      }
      return given;
    };
  };
}

/** Whether an address is this machine's own; 127.0.0.0/8, ::1, and the former inside of IPv6. */
function isLoopback(address: string): boolean {
  if (address === '::1') return true;
  const four = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
  return isIP(four) === 4 && four.startsWith('127.');
}
