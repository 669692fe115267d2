// The answer to a client that has sent nothing at all: MySQL's clients wait for the server's greeting, and show this error in its place.

/** ER_HANDSHAKE_ERROR. */
const errno = 1043;
const message =
  "This port speaks HTTP, not MySQL's protocol: dbhttpd is behind it. Send SQL as JSON to /v1/query, or connect to the database server itself.";

/**
 * An error packet in the place of the greeting: length, number 0, 0xff, errno, text. It has no SQLSTATE, because no capabilities are
 * agreed on yet. (MariaDB's command line and mysql2 show the text.) An HTTP client has asked for nothing yet, and closes the connection.
 */
export const errorForMysqlClient: Buffer = (() => {
  const headerBytes = 4;
  const packet = Buffer.alloc(headerBytes + 3 + message.length);
  packet.writeUIntLE(packet.length - headerBytes, 0, 3);
  packet.writeUInt8(0xff, headerBytes);
  packet.writeUInt16LE(errno, headerBytes + 1);
  packet.write(message, headerBytes + 3, 'latin1');
  return packet;
})();
