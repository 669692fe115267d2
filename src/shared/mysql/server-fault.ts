// What no well-behaved server does, as an error in our own words, which may be logged.
// Must not know what becomes of the connection.

/** A server that broke the protocol, or asked for what it does not get. */
export class ServerFault extends Error {
  readonly code: 'PROTOCOL_VIOLATION' | 'INSECURE_PASSWORD';

  constructor(code: ServerFault['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
