// Has mysql2 negotiate query attributes with servers that offer them, and with nobody else.
// Must not know how they are sent.

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
