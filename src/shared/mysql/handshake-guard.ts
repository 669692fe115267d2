// Stands before mysql2 while it shakes hands: bounds what a server may send, and takes what mysql2 throws.
// Must not know sockets: over TLS as without, mysql2 hands what it has read to its parser.
import { ServerFault } from './server-fault.ts';

/** A greeting, a switch of the method, a key, a refusal: far less than this in all. */
const mostHandshakeBytes = 64 * 1024;

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
      if (bytes > mostHandshakeBytes) {
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
