// Whether a request has a body, as its head tells.
// Must not know what the body is.
import type { IncomingMessage } from 'node:http';

/** Whether the head announces a body. Without one the request is complete with its head. */
export function announcesBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length'];
  return request.headers['transfer-encoding'] !== undefined || (length ?? '0') !== '0';
}
