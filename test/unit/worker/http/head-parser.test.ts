// Heads to the letter: what is taken, what is refused, and that a head which has not come in full is neither.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseHead } from '../../../../src/worker/http/head-parser.ts';
import { listFields } from '../../../../src/worker/http/header-section.ts';
import { cases, fc } from '../../../support/property.ts';

const limits = { maxUrlBytes: 100, maxHeadersBytes: 1000 };

function parse(text: string) {
  return parseHead(Buffer.from(text, 'latin1'), 0, limits);
}

/** taken, the code of the refusal, or that it waits. */
function verdict(text: string): string {
  const head = parse(text);
  if (head === null) return 'waits';
  return head.ok ? 'taken' : head.failure.code;
}

const get = (headers: string) => `GET / HTTP/1.1\r\nHost: a\r\n${headers}\r\n`;

test('fields are found by their names in any spelling, without the white space around their values', () => {
  const head = parse(
    get('ORIGIN: \t b \t\r\nx-Request-id:c\r\nX-Unknown: d\r\nAccept: e\r\naccept: f\r\n'),
  );
  assert.ok(head?.ok);
  const { headers, count } = head.section;
  const { host, origin, accept, 'x-request-id': id } = headers;
  assert.deepEqual([host, origin, accept, id, count], ['a', 'b', 'e, f', 'c', 6]);
});

test('all fields can be listed as they were sent', () => {
  const head = parse(get('X-A: \t b\xa0 \r\nx-a:c\r\n'));
  assert.ok(head?.ok);
  assert.deepEqual(listFields(head.section.text), ['Host', 'a', 'X-A', 'b\xa0', 'x-a', 'c']);
});

test('of a field with one value the first line counts, and it is known once that there are others', () => {
  const head = parse(get('User-Agent: b\r\nuser-agent: c\r\nHost: d\r\nHost: e\r\n'));
  assert.ok(head?.ok);
  assert.deepEqual([head.section.headers['user-agent'], head.section.headers.host], ['b', 'a']);
  assert.deepEqual(head.section.repeated, ['user-agent', 'host']);
});

test('a header line has a name, a colon right behind it, a value, and CR LF', () => {
  for (const line of [
    'A:\r\n',
    'A: b c\r\n',
    "!#$%&'*+-.^_`|~09aZ: b\r\n",
    'A: \xe9\xff\r\n',
    'A: b:c\r\n',
  ]) {
    assert.equal(verdict(get(line)), 'taken', JSON.stringify(line));
  }
  for (const line of [
    'A : b\r\n',
    ': b\r\n',
    'no colon\r\n',
    'A: b\n',
    'A: b\n\n',
    'A: b\0\n',
    'A: b\r\r\n',
    'A: b\rc\r\n',
    'A: b\0c\r\n',
    'A: b\x7f\r\n',
    'A: b\r\n c\r\n',
    'A: b\r\n\tc\r\n',
    'A(: b\r\n',
    '\xe9: b\r\n',
  ]) {
    assert.equal(verdict(get(line)), 'BAD_REQUEST', JSON.stringify(line));
  }
});

test('the end of a body is certain, or the request is refused', () => {
  const taken = [
    'Content-Length: 0',
    'Content-Length: 007',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, CHUNKED',
  ];
  for (const line of taken) assert.equal(verdict(get(`${line}\r\n`)), 'taken', line);
  const [length, chunked] = ['Content-Length: 5\r\n', 'Transfer-Encoding: chunked\r\n'];
  for (const lines of [
    length + length,
    length + chunked,
    chunked + length,
    chunked + chunked,
    'Content-Length: 5, 5\r\n',
    'Content-Length:\r\n',
    'Content-Length: +5\r\n',
    'Content-Length: -5\r\n',
    'Content-Length: 0x5\r\n',
    'Content-Length: 9007199254740992\r\n',
    'Content-Length: 5 5\r\n',
    'Transfer-Encoding: chunked, gzip\r\n',
    'Transfer-Encoding: gzip\r\n',
    'Transfer-Encoding: xchunked\r\n',
    'Transfer-Encoding: chunked;a=b\r\n',
    'Transfer-Encoding:\r\n',
  ]) {
    assert.equal(verdict(get(lines)), 'BAD_REQUEST', JSON.stringify(lines));
  }
});

test('Connection is a list of tokens', () => {
  for (const value of ['close', ' keep-alive , ,Upgrade', ',', '', 'a,\tb', ' \t, a \t']) {
    assert.equal(verdict(get(`Connection: ${value}\r\n`)), 'taken', value);
  }
  for (const value of ['close;x', 'a b', '"close"', 'keep-alive: close', '\\close', 'close\xa0']) {
    assert.equal(verdict(get(`Connection: ${value}\r\n`)), 'BAD_REQUEST', value);
  }
});

test('methods are those that are registered, and targets visible ASCII from a slash on', () => {
  for (const line of [
    'PROPFIND / HTTP/1.1',
    'M-SEARCH /?{"a":[]} HTTP/1.0',
    'QUERY //a#b HTTP/1.1',
  ]) {
    assert.equal(verdict(`${line}\r\n\r\n`), 'taken', line);
  }
  for (const line of [
    'BREW / HTTP/1.1',
    'get / HTTP/1.1',
    'G$T / HTTP/1.1',
    'GET /\xe9 HTTP/1.1',
    'GET /\t HTTP/1.1',
  ]) {
    assert.equal(verdict(`${line}\r\n\r\n`), 'BAD_REQUEST', line);
  }
});

test('a head that is cut waits for its rest, wherever it is cut', () => {
  const whole = get('Content-Length: 5\r\nA: b\r\n');
  for (let length = 0; length < whole.length; length += 1) {
    assert.equal(verdict(whole.slice(0, length)), 'waits', `${length}`);
  }
  const head = parse(`${whole}hello`);
  assert.equal(head?.ok === true && head.section.end, whole.length);
});

test('whatever the bytes are, they are taken, refused or waited for', () => {
  const piece = fc.constantFrom(
    'GET ',
    '/a',
    ' HTTP/1.1',
    '\r\n',
    '\n',
    '\r',
    'Host: a',
    ':',
    ' ',
    '\0',
    '\xff',
    'Content-Length: 5',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = pieces.join('');
      const said = verdict(text);
      if (said === 'waits') return;
      // More bytes change neither.
      assert.equal(verdict(`${text}GET / HTTP/1.1\r\n\r\n`), said);
    }),
    { numRuns: cases(2_000) },
  );
});
