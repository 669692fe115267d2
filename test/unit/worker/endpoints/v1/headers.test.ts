// The media type and the coding of a reply, by the request's headers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseMediaType, prefersGzip } from '../../../../../src/worker/endpoints/v1/headers.ts';

test('the media type with the greatest weight is chosen, and of equals the first', () => {
  const cases: [accept: string | undefined, type: string | null][] = [
    [undefined, 'application/json'],
    [' ', 'application/json'],
    ['*/*', 'application/json'],
    ['application/*', 'application/json'],
    ['application/json', 'application/json'],
    ['application/x-ndjson', 'application/x-ndjson'],
    ['text/csv', 'text/csv'],
    ['TEXT/csv', 'text/csv'],
    ['text/csv, application/json', 'application/json'],
    ['text/csv;q=0.5, application/x-ndjson;q=0.4', 'text/csv'],
    ['*/*;q=0', null],
    ['text/html', null],
  ];
  for (const [accept, type] of cases) assert.equal(chooseMediaType(accept), type, accept);
  assert.equal(chooseMediaType('text/csv', ['application/json']), null);
  assert.equal(chooseMediaType('*/*', []), null);
});

test('gzip is preferred if the client accepts it at least as well as a reply as it is', () => {
  const cases: [accepted: string | undefined, isPreferred: boolean][] = [
    [undefined, false],
    ['', false],
    ['gzip', true],
    ['gzip, deflate, br, zstd', true],
    ['deflate,gzip', true],
    ['gzip,gzip', true],
    ['GZIP', true],
    ['x-gzip', true],
    ['*', true],
    ['identity, gzip', true],
    ['deflate, br', false],
    ['gzip-like, my-gzip', false],
    ['gzip;q=0', false],
    ['identity, gzip;q=0.5', false],
    ['*;q=0, gzip', true],
  ];
  for (const [accepted, isPreferred] of cases) {
    const headers = accepted === undefined ? {} : { 'accept-encoding': accepted };
    assert.equal(prefersGzip(headers), isPreferred, accepted);
  }
});
