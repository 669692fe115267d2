// /openapi.json: the description of /v1, for tools that make clients and pages of it.
// Must not know what it says.

import { jsonType } from '../../../encode/head.ts';
import { sendText } from '../../../http/reply.ts';
import type { Handler } from '../../endpoint.ts';
import { describeV1 } from './document.ts';

/** Creates the endpoint of one worker. The text is made once. */
export function createOpenapi(): Handler {
  const text = JSON.stringify(describeV1());
  return (_request, response, _head, { requestId }) => {
    response.setHeader('X-Request-ID', requestId);
    sendText(response, text, jsonType);
  };
}
