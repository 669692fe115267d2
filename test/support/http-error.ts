// The ways in which a raw HTTP exchange can fail.

/** `reset`: RST; `ended-early`: FIN before the reply was whole; `timeout`; `malformed`: not HTTP. */
export type HttpFault = 'reset' | 'ended-early' | 'timeout' | 'malformed';

/** A reply that never became whole. `received` is what of its body (or head) had arrived. */
export class HttpReplyError extends Error {
  readonly fault: HttpFault;
  readonly received: Buffer;

  constructor(fault: HttpFault, detail: string, received: Buffer = Buffer.alloc(0)) {
    super(`${fault}: ${detail}`);
    this.name = 'HttpReplyError';
    this.fault = fault;
    this.received = received;
  }
}
