// A request as the parser makes it from text, on a socket that is not connected.
import { Socket } from 'node:net';
import { type ParsedHead, parseHead } from '../../src/worker/http/head-parser.ts';
import { IncomingRequest } from '../../src/worker/http/request.ts';

const limits = { maxUrlBytes: 1024 ** 2, maxHeadersBytes: 1024 ** 2 };

/** The head that these lines are. Throws if they are refused or incomplete. */
export function parsedHead(text: string): ParsedHead {
  const head = parseHead(Buffer.from(text, 'latin1'), 0, limits);
  if (head?.ok !== true) throw new Error(head?.failure.message ?? 'the head is incomplete');
  return head;
}

/** The request with this line and these headers. Its body never comes by itself: `take` and `end` give it. */
export function incomingRequest(
  headers: readonly (readonly [name: string, value: string])[] = [],
  line = 'GET / HTTP/1.1',
): IncomingRequest {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return new IncomingRequest(parsedHead(`${line}\r\n${lines}\r\n`), new Socket(), {
    bodyIsWanted: () => {},
  });
}
