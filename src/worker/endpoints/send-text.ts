// A short text as the whole of a reply.
// Must not know what it says.
import type { OutgoingReply } from '../http/reply.ts';

/** Answers with a text. Nothing may have been sent before, but for headers that were set. */
export function sendText(
  response: OutgoingReply,
  text: string,
  contentType = 'text/plain; charset=utf-8',
  status = 200,
): void {
  response.setHeader('Content-Type', contentType);
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.writeHead(status);
  response.end(text);
}
