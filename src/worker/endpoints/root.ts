// GET /: says what answers here, and where to go on.
import { jsonType } from '../encode/head.ts';
import { sendText } from '../http/failure-reply.ts';
import type { Handler } from './endpoint.ts';

/** Creates the handler. Its reply is the same for every client. @param documents an address, or null if none is public */
export function createRoot(hasConsole: boolean, documents: string | null): Handler {
  const text = JSON.stringify({
    name: 'dbhttpd',
    description: 'A MySQL or MariaDB database behind HTTP and JSON',
    links: {
      openapi: '/openapi.json',
      ...(hasConsole ? { console: '/console' } : {}),
      ...(documents === null ? {} : { documents }),
    },
  });
  return (_request, response, _head, { requestId }) => {
    response.addHeaders(['X-Request-ID', requestId]);
    sendText(response, text, jsonType);
  };
}
