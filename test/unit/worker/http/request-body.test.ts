// A body of exactly the limit is taken, and one byte more refused, whether its length is announced or not.
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { OutgoingReply } from '../../../../src/worker/http/reply.ts';
import { readBody } from '../../../../src/worker/http/request.ts';

const maxBytes = 8;

function read(bytes: number, headers: Record<string, string>): Promise<string> {
  const request = Object.assign(new PassThrough(), { headers }) as unknown as IncomingMessage;
  const answer = new Promise<string>((resolve) => {
    readBody(request, {} as OutgoingReply, maxBytes, {
      complete: (body) => resolve(`${body.length} bytes`),
      failed: ({ code }) => resolve(code),
    });
  });
  (request as unknown as PassThrough).end(Buffer.alloc(bytes));
  return answer;
}

test('a body of exactly the limit is taken, and one byte more refused', async () => {
  for (const headersOf of [
    () => ({ 'transfer-encoding': 'chunked' }),
    (bytes: number) => ({ 'content-length': String(bytes) }),
  ]) {
    assert.equal(await read(maxBytes, headersOf(maxBytes)), '8 bytes');
    assert.equal(await read(maxBytes + 1, headersOf(maxBytes + 1)), 'BODY_TOO_LARGE');
  }
});

test('a body in another coding is not read as plain text', async () => {
  const gzipped = { 'content-length': '1', 'content-encoding': 'gzip' };
  assert.equal(await read(1, gzipped), 'UNSUPPORTED_MEDIA_TYPE');
  assert.equal(await read(1, { 'transfer-encoding': 'gzip, chunked' }), 'TRANSFER_CODING');
});
