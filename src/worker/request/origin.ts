// Where a request comes from that is passed on to another worker: a header between the two, and no client's to send.
// Must not know why it is passed on, nor what is done with what it says.
import type { RequestHeaders } from '../http/request.ts';
import type { Origin } from '../observe/observation.ts';

/** In lower case. */
export const originHeader = 'x-dbhttpd-origin';

const ofUnixSocket = '-';

/** The header's value. */
export function formatOrigin({ client, httpVersion, ageMs }: Origin): string {
  return `${client === '' ? ofUnixSocket : client} ${httpVersion} ${ageMs.toFixed(3)}`;
}

/** Reads it where another worker has sent it; null: it has not. */
export function readOrigin({ [originHeader]: value }: RequestHeaders): Origin | null {
  if (typeof value !== 'string') return null;
  const [client = '', httpVersion = '', ageMs = ''] = value.split(' ');
  return { client: client === ofUnixSocket ? '' : client, httpVersion, ageMs: Number(ageMs) };
}
