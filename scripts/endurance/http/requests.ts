// Valid requests in every form that the gateway takes, drawn by a seed, each with a token that its reply shows.
import type { Draw } from './draw.ts';

/** A valid request, one character a byte. */
export type ValidRequest = {
  readonly text: string;
  readonly status: number;
  /** A part of its reply; empty: nothing in particular. */
  readonly shows: string;
  /** Whether the connection ends with its reply. */
  readonly closes: boolean;
};

const names = ['localhost', 'LOCALHOST', '127.0.0.1', 'localhost:9090', '[::1]'];
const fields = [
  'Accept: */*',
  'accept:application/json',
  'Accept-Language: \t de, en;q=0.5 \t ',
  'Cookie: a=b; c="d"',
  'Cookie: e=f',
  'X-Empty:',
  'X-Empty: ',
  'X-Text: caf\xe9',
  'X-Request: GET / HTTP/1.1',
  "X!#$%&'*+-.^_`|~0: every octet of a name",
  'Connection: keep-alive',
  'Connection: X-Text, Keep-Alive',
  'Keep-Alive: timeout=5',
  'User-Agent: soak/1 (http)',
  'Content-Language: en',
  'TE: trailers',
  'Trailer: X-Sum',
];
const extensions = ['', '', '', ';a', ';a=b', ';a="b"', ';a;b=c', ';n="0"'];
const trailers = ['', '', 'X-Sum: 1\r\n', 'X-Sum: 1\r\nX-Text: 0\r\n'];
const spaces = ['', '', ' ', '\r\n', '\r\n\r\n', '\t'];

/** Draws a request. `token` is a word that occurs nowhere else. */
export function drawRequest(draw: Draw, token: string): ValidRequest {
  const kinds = [
    drawGet,
    drawGet,
    drawPost,
    drawPost,
    drawPost,
    drawPlain,
    drawRefused,
    drawNested,
  ];
  return draw.pick(kinds)(draw, token);
}

function drawGet(draw: Draw, token: string): ValidRequest {
  const sql = draw.pick([`select '${token}'`, `select  '${token}' as a`]);
  const json = JSON.stringify({ SQL: sql });
  const query = draw.pick([encodeURIComponent, escapeSparingly])(json);
  return finish(draw, { line: `GET /db?${query}`, status: 200, shows: `[["${token}"]]` });
}

/** As old clients write a URL. */
function escapeSparingly(json: string): string {
  return json.replaceAll(' ', '+').replaceAll('"', '%22');
}

const drawSpace = (draw: Draw) => draw.pick(spaces);

function drawPost(draw: Draw, token: string): ValidRequest {
  const isOld = draw.chance(4);
  const space = () => drawSpace(draw);
  const [sql, params] = isOld ? ['SQL', 'PARAMS'] : ['sql', 'params'];
  // The number and the line breaks look like the last chunk of a body that is not chunked.
  const further = draw.chance(3) ? `,${space()}0${space()}` : '';
  const marks = further === '' ? '?' : '?, ?';
  const values = `[${space()}"${token}"${further}]`;
  const body = `{${space()}"${sql}":"select ${marks}",${space()}"${params}":${values}}${space()}`;
  return finish(draw, {
    line: isOld ? 'POST /db' : 'POST /v1/query',
    type: 'application/json',
    body,
    status: 200,
    shows: `["${token}"`,
  });
}

function drawPlain(draw: Draw): ValidRequest {
  return finish(draw, {
    line: draw.pick(['GET /', 'HEAD /', 'GET /?x=1']),
    status: 200,
    shows: '',
  });
}

/** A request that the gateway refuses for another reason than its form. It may close the connection if a body has not come. */
function drawRefused(draw: Draw, token: string): ValidRequest {
  const paths = [`GET /nothing/${token}`, `HEAD /nothing?${token}`, `DELETE /${token}`];
  const line = draw.pick([...paths, 'PUT /db', 'PROPFIND /db', 'OPTIONS /db', 'PATCH /v1/query']);
  const status = line.endsWith('/db') || line.endsWith('/query') ? 405 : 404;
  if (/^(?:GET|HEAD)/.test(line) || draw.chance(2))
    return finish(draw, { line, status, shows: '' });
  return { ...finish(draw, { line, body: token, status, shows: '' }), closes: true };
}

/** A body that is itself a request: a server that loses count runs it. */
function drawNested(draw: Draw, token: string): ValidRequest {
  const inner = `GET /db?{"SQL":"select+'${token}'"} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  return finish(draw, {
    line: draw.pick(['POST /v1/query', 'POST /db']),
    type: 'application/json',
    body: inner,
    status: 400,
    shows: 'BAD_JSON',
  });
}

type Parts = {
  readonly line: string;
  readonly type?: string;
  readonly body?: string;
  readonly status: number;
  readonly shows: string;
};

function finish(draw: Draw, { line, type, body, status, shows }: Parts): ValidRequest {
  const isOld = draw.chance(6);
  const staysOpen = isOld && draw.chance(2);
  const head = [`Host:${draw.pick([' ', '', '\t '])}${draw.pick(names)}`];
  if (staysOpen) head.push('Connection: keep-alive');
  if (type !== undefined) head.push(`Content-Type: ${type}`);
  for (let left = draw.below(4); left > 0; left -= 1) {
    const field = draw.pick(fields);
    if (!isOld || !field.startsWith('Connection')) head.push(field);
  }
  const isChunked = body !== undefined && !isOld && draw.chance(2);
  if (isChunked) head.push(draw.pick(['Transfer-Encoding: chunked', 'transfer-encoding:Chunked']));
  else if (body !== undefined) head.push(`Content-Length: ${body.length}`);
  if (type !== undefined && !isOld && draw.chance(5)) head.push('Expect: 100-continue');
  draw.shuffle(head);
  const framed = body === undefined ? '' : isChunked ? drawChunks(draw, body) : body;
  const version = isOld ? '1.0' : '1.1';
  const text = `${line} HTTP/${version}\r\n${head.join('\r\n')}\r\n\r\n${framed}`;
  const before = draw.chance(12) ? '\r\n' : '';
  return { text: before + text, status, shows, closes: isOld && !staysOpen };
}

function drawChunks(draw: Draw, body: string): string {
  let chunks = '';
  for (let at = 0; at < body.length; ) {
    const size = Math.min(body.length - at, 1 + draw.below(body.length));
    const digits = draw.pick([
      size.toString(16),
      size.toString(16).toUpperCase(),
      `0${size.toString(16)}`,
    ]);
    chunks += `${digits}${draw.pick(extensions)}\r\n${body.slice(at, at + size)}\r\n`;
    at += size;
  }
  return `${chunks}${draw.pick(['0', '0', '00'])}${draw.pick(extensions)}\r\n${draw.pick(trailers)}\r\n`;
}
