// The bytes of one connection: one to three requests, one or two changes in them, a last request that ends the connection, and
// enough further bytes that no server waits for more.
import { createDraw, type Draw } from './draw.ts';
import { drawRequest, type ValidRequest } from './requests.ts';

/** The bytes of one connection. */
export type Stream = {
  readonly seed: number;
  /** One character a byte, without the padding. */
  readonly text: string;
  /** The ends of segments in the text. */
  readonly cuts: readonly number[];
  /** The requests if nothing was changed; null: something was. */
  readonly valid: readonly ValidRequest[] | null;
};

/** Behind each stream: no request in it is longer, so a server that waits for more gets it. It contains no request. */
export const padding: string = `${`${'!'.repeat(50)}\r\n`.repeat(50)}\r\n`;
/** The longest body that the gateway must take. Longer ones are refused at once, so their sender waits for nothing. */
export const maxRequestBytes = 2_048;

/** The path of the last request of each stream. */
export const lastPath = '/?last';
const last = `GET ${lastPath} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;

/** One stream in this many is left as it is. */
const validOneIn = 16;

/** Draws the stream of a seed. */
export function drawStream(seed: number): Stream {
  const draw = createDraw(seed);
  const count = draw.pick([1, 1, 1, 2, 2, 3]);
  const requests = Array.from({ length: count }, (_, n) => drawRequest(draw, `t${seed}x${n}`));
  const original = requests.map(({ text }) => text).join('');
  const isValid = draw.chance(validOneIn);
  let text = original;
  if (!isValid) {
    for (let left = draw.pick([1, 1, 1, 2]); left > 0; left -= 1) text = mutate(draw, text);
  }
  const all = text + last;
  const pieces = draw.pick([0, 0, 0, 1, 1, 2]);
  const cuts = Array.from({ length: pieces }, () => draw.below(all.length));
  const valid = text === original ? requests : null;
  return { seed, text: all, cuts: cuts.sort((one, other) => one - other), valid };
}

/** Chooses the place of a change: a third of them anywhere, the others at a mark of syntax. */
function drawPlace(draw: Draw, text: string): number {
  if (draw.chance(3)) return draw.below(text.length);
  const marks = draw.pick([
    '\r\n',
    '\r\n',
    ':',
    ' ',
    'HTTP/1.',
    'Content-Length',
    'ransfer-',
    '\r\n\r\n',
  ]);
  const places: number[] = [];
  for (let at = text.indexOf(marks); at >= 0; at = text.indexOf(marks, at + 1)) places.push(at);
  if (places.length === 0) return draw.below(text.length);
  return Math.min(text.length - 1, draw.pick(places) + draw.below(marks.length + 1));
}

const odd = [
  ...[
    '\r',
    '\n',
    '\r\n',
    '\n\r',
    '\r\r\n',
    ' ',
    '  ',
    '\t',
    '\0',
    '\v',
    '\f',
    '\x7f',
    '\x80',
    '\xa0',
    '\x85',
  ],
  ...[
    ':',
    ';',
    ',',
    '=',
    '"',
    '0',
    '1',
    '9',
    'a',
    'F',
    'x',
    '/',
    '?',
    '#',
    '+',
    '-',
    '_',
    '.',
    '(',
    '@',
    '\\',
  ],
];
const lines = [
  ...[
    'Content-Length: 0',
    'Content-Length: 5',
    'Content-Length: +5',
    'Content-Length: 5, 5',
    'Content-Length : 5',
  ],
  ...[
    'Content-Length: 0x5',
    'Content-Length: 18446744073709551621',
    'Content-Length:',
    'Content_Length: 5',
  ],
  ...[
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: gzip, chunked',
  ],
  ...[
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding:\tchunked',
    'Transfer-Encoding: xchunked',
  ],
  ...[
    'Transfer-Encoding: "chunked"',
    'Transfer-Encoding:',
    'Transfer-Encoding: chunked, chunked',
    'Transfer-Encoding\t: chunked',
  ],
  ...[
    'Transfer_Encoding: chunked',
    'Transfer-Encoding: chunked;q=1',
    'Transfer-Encoding: \vchunked',
  ],
  ...[
    'Host: evil.example',
    'Host: localhost',
    'Host:',
    'host : localhost',
    'Host: a@localhost',
    'Host: localhost, a',
  ],
  ...[
    'Connection: close',
    'Connection: keep-alive',
    'Connection: Content-Length',
    'Connection: Transfer-Encoding, close',
  ],
  ...[
    'Connection: Host',
    'Connection: Upgrade',
    'Upgrade: h2c',
    'Upgrade: websocket',
    'Expect: 100-continue',
  ],
  ...[
    'Expect: 200-ok',
    'Trailer: Content-Length',
    ' folded',
    '\tfolded',
    ': no name',
    'no colon',
    'GET / HTTP/1.1',
  ],
  ...[
    'Content-Encoding: identity',
    'X: \x01',
    'X: \xff',
    'X\xff: y',
    'X: a\rb',
    'X: a\nb',
    'X:\r\n y',
    '\rX: y',
    'X(: y',
  ],
];
const words: readonly (readonly [from: RegExp, to: readonly string[]])[] = [
  [
    /HTTP\/1\.[01]/,
    [
      'HTTP/1.0',
      'HTTP/1.1',
      'HTTP/1.2',
      'HTTP/2.0',
      'HTTP/0.9',
      'http/1.1',
      'HTTP/1',
      'HTTP/1.10',
      'HTTP/01.1',
      'HTTP /1.1',
      'ICE/1.0',
      '',
    ],
  ],
  [
    /(?:GET|POST|HEAD|PUT)(?= \/)/,
    [
      'get',
      'GET',
      'POST',
      'HEAD',
      'PROPFIND',
      'BREW',
      'CONNECT',
      'OPTIONS',
      'QUERY',
      'PRI',
      'G ET',
      'GET\t',
      '',
    ],
  ],
  [
    /(?<= )\/[^ ]*(?= HTTP)/,
    [
      '*',
      'localhost:80',
      'http://localhost/nothing',
      'http://evil.example/nothing',
      'nothing',
      '/nothing\x80',
      '//nothing',
      '/nothing#a',
      '/nothing?\xc3\xa9',
      '/\\nothing',
      '/nothing"',
      '',
    ],
  ],
  [
    /Content-Length: *\d+/i,
    [
      'Content-Length: 00',
      'Content-Length: 1',
      'Content-Length: -1',
      'Content-Length: 1e1',
      'Content-Length: 1 1',
      'Content-Length: 10,10',
      'content-length:\t7\t',
      'Content-Length: 4294967301',
    ],
  ],
  [
    /ransfer-encoding: *chunked/i,
    [
      'ransfer-Encoding: CHUNKED',
      'ransfer-Encoding: chunked ',
      'ransfer-Encoding:\r\n chunked',
      'ransfer-Encoding: chunked,',
      'ransfer-Encoding: ,chunked',
      'ransfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
      'ransfer-Encoding: identity, chunked',
      'ransfer-Encoding : chunked',
    ],
  ],
  [
    /\r\n0[0-9a-fA-F]*[^\r]*\r\n/,
    [
      '\r\n0\r\n\r\n0\r\n',
      '\r\n-0\r\n',
      '\r\n0x0\r\n',
      '\r\n 0\r\n',
      '\r\n0 \r\n',
      '\r\n0;\r\n',
      '\r\n0;a\nb\r\n',
      '\r\n0;a\rb\r\n',
      '\r\n0\n',
      '\r\n00000000000000000\r\n',
      '\r\n\r\n',
      '\r\n0\r\nContent-Length: 5\r\n',
      '\r\n0\r\nX : y\r\n',
      '\r\n0\r\nno colon\r\n',
    ],
  ],
  [
    /\r\n[1-9a-fA-F][0-9a-fA-F]?(?=[;\r])/,
    [
      '\r\n1',
      '\r\n10000000000000001',
      '\r\nffffffffffffffff',
      '\r\n+5',
      '\r\n5 ',
      '\r\n\t5',
      '\r\n0x5',
      '\r\n5;',
      '\r\n5;a="\r\n"',
      '\r\n5;a=\\',
      '\r\n5 ;a',
      '\r\n5;\x80',
      '\r\n5;a=b;\x01',
      '\n5',
    ],
  ],
  [
    /Host:[^\r]*/,
    [
      'Host:',
      'Host: ',
      'Host: evil.example',
      'Host: localhost:',
      'Host: localhost:99999',
      'Host: loc alhost',
      'Host: localhost/',
      'Host: [::1',
      'Host: localhost\x80',
      'host: localhost',
      'Host\0: localhost',
      'X: y',
    ],
  ],
];

function mutate(draw: Draw, text: string): string {
  const at = drawPlace(draw, text);
  const [before, behind] = [text.slice(0, at), text.slice(at)];
  switch (draw.below(11)) {
    case 0:
      return before + draw.pick(odd) + behind;
    case 1:
      return before + draw.pick(odd) + behind.slice(1);
    case 2:
      return before + behind.slice(1 + draw.below(3));
    case 3:
      return before + behind.slice(0, 1 + draw.below(20)) + behind;
    case 4:
      return before + String.fromCharCode(draw.below(256)) + behind.slice(1);
    case 5:
    case 6:
      return insertLine(draw, text, at);
    case 7:
      return repeatLine(text, at);
    case 8:
      return changeNumber(draw, text);
    default:
      return replaceWord(draw, text);
  }
}

function insertLine(draw: Draw, text: string, at: number): string {
  const end = text.indexOf('\r\n', at);
  if (end < 0) return `${text}\r\n${draw.pick(lines)}`;
  return `${text.slice(0, end)}\r\n${draw.pick(lines)}${text.slice(end)}`;
}

function repeatLine(text: string, at: number): string {
  const start = text.lastIndexOf('\r\n', at);
  const end = text.indexOf('\r\n', at + 1);
  if (start < 0 || end <= start) return text + text.slice(at);
  return text.slice(0, end) + text.slice(start, end) + text.slice(end);
}

/** Makes one of the numbers larger or smaller by a little, or longer by a digit. */
function changeNumber(draw: Draw, text: string): string {
  const found = [
    ...text.matchAll(/(?<=Content-Length: *)\d+|(?<=\r\n)[0-9a-fA-F]{1,2}(?=[;\r])/gi),
  ];
  const one = found.length === 0 ? undefined : draw.pick(found);
  if (one === undefined) return text + draw.pick(odd);
  const isLength = text.slice(0, one.index).endsWith(' ');
  const base = isLength ? 10 : 16;
  const value = Number.parseInt(one[0], base) + draw.pick([-2, -1, 1, 2, 16, 64]);
  const digits = draw.pick([
    Math.max(0, value).toString(base),
    `0${one[0]}`,
    `${one[0]}0`,
    ` ${one[0]}`,
    `${one[0]} `,
  ]);
  return text.slice(0, one.index) + digits + text.slice(one.index + one[0].length);
}

function replaceWord(draw: Draw, text: string): string {
  const [from, to] = draw.pick(words);
  const found = [...text.matchAll(new RegExp(from, 'g'))];
  if (found.length === 0) return insertLine(draw, text, draw.below(text.length));
  const one = draw.pick(found);
  return text.slice(0, one.index) + draw.pick(to) + text.slice(one.index + one[0].length);
}
