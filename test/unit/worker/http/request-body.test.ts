// A body of exactly the limit is taken, and one byte more refused, whether its length is announced or not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readBody } from '../../../../src/worker/http/request.ts';
import { incomingRequest } from '../../../support/incoming.ts';

const maxBytes = 8;

function read(bytes: number, ...headers: readonly (readonly [string, string])[]): Promise<string> {
  const request = incomingRequest(headers, 'POST / HTTP/1.1');
  const answer = new Promise<string>((resolve) => {
    readBody(request, { writeContinue: () => {} }, maxBytes, {
      complete: (body) => resolve(`${body.length} bytes`),
      failed: ({ code }) => resolve(code),
    });
  });
  request.take(Buffer.alloc(bytes));
  request.end();
  return answer;
}

test('a body of exactly the limit is taken, and one byte more refused', async () => {
  for (const headerOf of [
    () => ['Transfer-Encoding', 'chunked'] as const,
    (bytes: number) => ['Content-Length', String(bytes)] as const,
  ]) {
    assert.equal(await read(maxBytes, headerOf(maxBytes)), '8 bytes');
    assert.equal(await read(maxBytes + 1, headerOf(maxBytes + 1)), 'BODY_TOO_LARGE');
  }
});

test('a body in another coding is not read as plain text', async () => {
  const gzipped = [
    ['Content-Length', '1'],
    ['Content-Encoding', 'gzip'],
  ] as const;
  assert.equal(await read(1, ...gzipped), 'UNSUPPORTED_MEDIA_TYPE');
  assert.equal(await read(1, ['Transfer-Encoding', 'gzip, chunked']), 'TRANSFER_CODING');
});

test('pieces are joined when the body is read, and are not wanted before', () => {
  const request = incomingRequest([['Content-Length', '6']], 'POST / HTTP/1.1');
  assert.equal(request.takesPieces, false);
  let body = '';
  readBody(request, { writeContinue: () => {} }, maxBytes, {
    complete: (bytes) => {
      body = String(bytes);
    },
    failed: ({ message }) => assert.fail(message),
  });
  assert.equal(request.takesPieces, true);
  for (const piece of ['ab', 'cd', 'ef']) request.take(Buffer.from(piece));
  assert.deepEqual([body, request.complete], ['', false]);
  request.end();
  assert.deepEqual([body, request.complete], ['abcdef', true]);
});

test('100 (Continue) is sent for a body that is wanted and has not come, to HTTP/1.1 alone', () => {
  const expecting = (line: string, ...more: readonly (readonly [string, string])[]) => {
    let continued = 0;
    const request = incomingRequest([['Expect', '100-continue'], ...more], line);
    readBody(
      request,
      {
        writeContinue: () => {
          continued += 1;
        },
      },
      maxBytes,
      { complete: () => {}, failed: () => {} },
    );
    return continued;
  };
  assert.equal(expecting('POST / HTTP/1.1', ['Content-Length', '1']), 1);
  assert.equal(expecting('POST / HTTP/1.1', ['Content-Length', '9']), 0);
  assert.equal(expecting('POST / HTTP/1.0', ['Content-Length', '1']), 0);
  assert.equal(expecting('GET / HTTP/1.1'), 0);
});
