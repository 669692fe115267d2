// The judge of mutated requests: it finds what one reader accepts and another does not, and what both read in two ways. Sends nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  acceptedOf,
  compareReplies,
  findDisagreement,
  findMissing,
  plainForm,
} from '../../../../scripts/endurance/http/judge.ts';
import { readReplies } from '../../../../scripts/endurance/http/replies.ts';
import { drawStream, lastPath } from '../../../../scripts/endurance/http/streams.ts';
import type { Understood } from '../../../../scripts/endurance/http/understood.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok';
const bad = (code: string) =>
  `HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: ${code.length + 11}\r\n\r\n{"CODE":"${code}"}`;
const notFound = (connection: string) =>
  `HTTP/1.1 404 Not Found\r\nConnection: ${connection}\r\nContent-Length: 2\r\n\r\n{}`;
const read = (text: string) => readReplies(text) ?? assert.fail('not read');
const request = (more: Partial<Understood> = {}): Understood => ({
  method: 'GET',
  target: '/a',
  version: '1.1',
  headers: ['Host', 'localhost'],
  body: '',
  ...more,
});

test('replies are read one behind the other: interim ones, chunks, to HEAD, to the end', () => {
  const chunked =
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n';
  const toHead = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n';
  const text = `HTTP/1.1 100 Continue\r\n\r\n${ok}${chunked}${toHead}${bad('BAD_JSON')}${toHead}`;
  assert.deepEqual(
    read(text).map(({ status, body, closes }) => [status, body, closes]),
    [
      [200, 'ok', false],
      [200, 'abc', false],
      [200, '', false],
      [400, '{"CODE":"BAD_JSON"}', true],
      [200, '', false],
    ],
  );
  for (const cut of [ok.slice(0, 20), ok.slice(0, -1), 'SSH-2.0\r\n\r\n', chunked.slice(0, -9)]) {
    assert.equal(readReplies(cut), null, cut);
  }
});

test('bytes that the gateway refuses are no requests, and a bad request of good form is one', () => {
  const countOf = (text: string) => acceptedOf(read(text)).length;
  assert.equal(countOf(ok + ok), 2);
  assert.equal(countOf(ok + bad('BAD_REQUEST')), 1);
  assert.equal(countOf(ok + bad('BAD_JSON')), 2);
  assert.equal(countOf(ok + notFound('keep-alive')), 2);
  assert.equal(countOf(ok + notFound('close')), 1);
});

test('a request that another reader refuses is found', () => {
  const replies = read(ok + ok);
  assert.equal(findMissing(replies, [request(), request()]), null);
  assert.equal(findMissing(replies, [request()])?.at, 1);
  assert.equal(findMissing(replies, [])?.at, 0);
  // The body that would follow may be malformed.
  assert.equal(findMissing(read(ok + notFound('keep-alive')), [request()]), null);
  assert.equal(findMissing(read(notFound('keep-alive') + ok), [request()])?.at, 1);
});

test('a request that is understood in two ways is found', () => {
  const one = request({ body: 'a' });
  assert.equal(
    findDisagreement(1, [one], [request({ body: 'a', headers: ['host', 'localhost'] })]),
    null,
  );
  const others = [
    { method: 'POST' },
    { target: '/b' },
    { headers: ['Host', 'evil.example'] },
    { headers: ['Host', 'localhost', 'Host', 'localhost'] },
    { body: 'ab' },
  ];
  for (const other of others) {
    const found = findDisagreement(2, [one, one], [one, request({ body: 'a', ...other })]);
    assert.equal(found?.at, 1, JSON.stringify(other));
  }
});

test('a reply that differs from that to the plain form is found, whatever the ids of requests are', () => {
  const withId = (id: string) =>
    read(`HTTP/1.1 200 OK\r\nContent-Length: ${id.length}\r\n\r\n${id}`);
  const [reply] = withId('"0123456789ab-1"');
  const [same] = withId('"0123456789ab-2"');
  const [other] = read(ok);
  assert.ok(reply && same && other);
  assert.equal(compareReplies(reply, same, 0), null);
  assert.equal(compareReplies(reply, other, 3)?.at, 3);
});

test('the plain form has the fields of the request, and a framing of its own', () => {
  const headers = ['Host', 'a', 'Transfer-Encoding', 'chunked', 'Expect', '100-continue', 'X', 'y'];
  assert.equal(
    plainForm(request({ method: 'POST', headers, body: 'abc' })),
    'POST /a HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 3\r\n\r\nabc',
  );
  assert.match(plainForm(request({ version: '1.0' })), /^GET \/a HTTP\/1.0\r\n.*keep-alive/s);
});

test('a seed always gives the same stream, its neighbour another one, and some are not changed', () => {
  assert.deepEqual(drawStream(7), drawStream(7));
  const all = Array.from({ length: 500 }, (_, n) => drawStream(n));
  assert.equal(new Set(all.map(({ text }) => text)).size, 500);
  const unchanged = all.filter(({ valid }) => valid !== null).length;
  assert.ok(unchanged > 10 && unchanged < 100, `${unchanged}`);
  assert.ok(all.every(({ text }) => text.includes(`GET ${lastPath} HTTP/1.1\r\n`)));
});
