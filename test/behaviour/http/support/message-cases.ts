// Cases of RFC 9112, one a line: what is sent, the status of the reply, and whether the connection stays open behind it.

/** A case. `status` 200 is that of an executed statement, and everything else executes nothing. */
export type MessageCase = readonly [
  section: string,
  what: string,
  bytes: string,
  status: number,
  connection: 'open' | 'closed',
];

const host = 'Host: localhost\r\n';
const never = '{"SQL":"select /* never */ 1"}';
const neverTarget = `/db?${encodeURIComponent(never)}`;
const good = '{"SQL":"select \'good\'"}';
const goodTarget = `/db?${encodeURIComponent(good)}`;
const size = good.length.toString(16);
const chunked = 'Transfer-Encoding: chunked\r\n';

/** A head that would run a statement which must not run. */
const line = (text: string, fields = host) => `${text}\r\n${fields}\r\n`;
const head = (fields: string) => line(`GET ${neverTarget} HTTP/1.1`, fields);
const target = (text: string) => line(`GET ${text} HTTP/1.1`);
const version = (text: string) => line(`GET ${neverTarget} ${text}`);
const hosted = (value: string) => head(`Host:${value}\r\n`);
const nothing = (fields: string, protocol = '1.1') =>
  line(`GET /nothing HTTP/${protocol}`, `${host}${fields}`);
const post = (fields: string, body: string, protocol = '1.1') =>
  `POST /db HTTP/${protocol}\r\n${host}Content-Type: application/json\r\n${fields}\r\n${body}`;
const length = (value: string, body = never) => post(`Content-Length:${value}\r\n`, body);
const body = `${size}\r\n${good}\r\n0\r\n\r\n`;
const coded = (value: string) => post(`Transfer-Encoding:${value}\r\n`, body);
/** Refused by its head. */
const coding = (value: string) => post(`Transfer-Encoding:${value}\r\n`, '');
const chunks = (text: string) => post(chunked, text);
const badChunks = (text: string) => post(chunked, text.replace(good, never));
/** A body whose first chunk has this line. */
const sized = (text: string, body = good) => chunks(`${text}\r\n${body}\r\n0\r\n\r\n`);
const trailed = (text: string) => chunks(`${size}\r\n${good}\r\n0\r\n${text}\r\n`);

/** This many fields; with Host there is one more. */
const fields = (count: number) => host + 'X: y\r\n'.repeat(count);
/** Fields of this many bytes together, without the line end behind the request line. */
const bytes = (count: number) =>
  `${host}X: ${'y'.repeat(count - host.length - 'X: \r\n'.length)}\r\n`;
const kib16 = 16 * 1024;

export const messageCases: readonly MessageCase[] = [
  ['2.2', 'an empty line before it', `\r\n${target(goodTarget)}`, 200, 'open'],
  ['2.2', 'two empty lines before it', `\r\n\r\n${head(host)}`, 400, 'closed'],
  ['2.2', 'a bare LF before it', `\n${head(host)}`, 400, 'closed'],
  ['2.2', 'a bare CR before it', `\r\n\r${head(host)}`, 400, 'closed'],
  ['2.2', 'bare LFs', head(host).replaceAll('\r\n', '\n'), 400, 'closed'],
  ['2.2', 'a bare LF behind the request line', head(host).replace('\r\n', '\n'), 400, 'closed'],
  ['2.2', 'a bare LF behind a field', head(`${host}A: b\nC: d\r\n`), 400, 'closed'],
  ['2.2', 'a bare LF as the last line', head(host).replace(/\r\n$/, '\n\r\n'), 400, 'closed'],
  ['2.2', 'a bare CR behind the request line', head(host).replace('\r\n', '\r'), 400, 'closed'],
  ['2.2', 'a bare CR in a value', head(`${host}A: b\rC: d\r\n`), 400, 'closed'],
  ['2.2', 'two CRs at the end of a line', head(`${host}A: b\r\r\n`), 400, 'closed'],
  ['2.2', 'a space before the first field', head(` A: b\r\n${host}`), 400, 'closed'],
  ['2.2', 'TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 400, 'closed'],

  ['2.3', 'HTTP/1.0', line(`GET ${goodTarget} HTTP/1.0`), 200, 'closed'],
  ['2.3', 'HTTP/0.9', 'GET /nothing\r\n\r\n', 400, 'closed'],
  ['2.3', 'HTTP/1.2', version('HTTP/1.2'), 400, 'closed'],
  ['2.3', 'HTTP/2.0', version('HTTP/2.0'), 400, 'closed'],
  ['2.3', 'HTTP/3.7', version('HTTP/3.7'), 400, 'closed'],
  ['2.3', 'two digits', version('HTTP/1.10'), 400, 'closed'],
  ['2.3', 'a leading zero', version('HTTP/01.1'), 400, 'closed'],
  ['2.3', 'no minor version', version('HTTP/1'), 400, 'closed'],
  ['2.3', 'small letters', version('http/1.1'), 400, 'closed'],
  ['2.3', 'RTSP', version('RTSP/1.0'), 400, 'closed'],
  ['2.3', 'ICE', line(`SOURCE ${neverTarget} ICE/1.0`), 400, 'closed'],
  ['2.3', 'the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'closed'],

  ['3', 'two spaces before the target', line(`GET  ${neverTarget} HTTP/1.1`), 400, 'closed'],
  ['3', 'two spaces behind the target', version(' HTTP/1.1'), 400, 'closed'],
  ['3', 'a tab before the target', line(`GET\t${neverTarget} HTTP/1.1`), 400, 'closed'],
  ['3', 'a tab behind the target', line(`GET ${neverTarget}\tHTTP/1.1`), 400, 'closed'],
  ['3', 'a space behind the version', version('HTTP/1.1 '), 400, 'closed'],
  ['3', 'a space before the method', ` ${head(host)}`, 400, 'closed'],
  ['3.1', 'a method in small letters', line(`get ${neverTarget} HTTP/1.1`), 400, 'closed'],
  ['3.1', 'a method that IANA does not list', line('BREW /db HTTP/1.1'), 400, 'closed'],
  ['3.1', 'a method of WebDAV', line('PROPFIND /db HTTP/1.1'), 405, 'open'],
  ['3.1', 'a method that the path does not take', line('DELETE /db HTTP/1.1'), 405, 'open'],
  ['3.1', 'a method that never ends', 'G'.repeat(40), 400, 'closed'],
  ['3.1', 'an empty method', ` ${neverTarget} HTTP/1.1\r\n${host}\r\n`, 400, 'closed'],

  ['3.2', 'an empty target', line('GET  HTTP/1.1'), 400, 'closed'],
  ['3.2', 'a control character in it', target(`${neverTarget}\x01`), 400, 'closed'],
  ['3.2', 'a NUL in it', target(`${neverTarget}\0`), 400, 'closed'],
  ['3.2', 'DEL in it', target(`${neverTarget}\x7f`), 400, 'closed'],
  ['3.2', 'an octet above ASCII in it', target(`${neverTarget}\xe9`), 400, 'closed'],
  ['3.2', 'a tab in it', target(`${neverTarget}\ta`), 400, 'closed'],
  ['3.2.1', 'a path that begins with two slashes', target('//db?{}'), 404, 'open'],
  ['3.2.1', 'a path without slash', target('db?{}'), 400, 'closed'],
  ['3.2.1', 'a query alone', target('?{}'), 400, 'closed'],
  ['3.2.1', 'a URL that never ends', `GET /${'y'.repeat(1024 ** 2 + 20)}`, 414, 'closed'],
  ['3.2.2', 'the absolute form', target(`http://localhost${neverTarget}`), 400, 'closed'],
  ['3.2.2', 'the absolute form of OPTIONS', line('OPTIONS http://a HTTP/1.1'), 400, 'closed'],
  [
    '3.2.3',
    'CONNECT',
    line('CONNECT localhost:1 HTTP/1.1', 'Host: localhost:1\r\n'),
    405,
    'closed',
  ],
  ['3.2.3', 'the authority form of GET', target('localhost:80'), 400, 'closed'],
  ['3.2.4', 'OPTIONS *', line('OPTIONS * HTTP/1.1'), 400, 'closed'],
  ['3.2.4', 'GET *', target('*'), 400, 'closed'],

  ['3.2', 'no Host', head(''), 400, 'closed'],
  ['3.2', 'no Host in HTTP/1.0', line(`GET /nothing HTTP/1.0`, ''), 404, 'closed'],
  ['3.2', 'an empty Host', hosted(''), 400, 'closed'],
  ['3.2', 'two Hosts', head(`${host}${host}`), 400, 'closed'],
  ['3.2', 'two Hosts in HTTP/1.0', line(`GET ${neverTarget} HTTP/1.0`, host + host), 400, 'closed'],
  ['3.2', 'a second Host behind 98 fields', head(`${fields(98)}${host}`), 400, 'closed'],
  ['3.2', 'a list of hosts', hosted(' 127.0.0.1:80, evil'), 400, 'closed'],
  ['3.2', 'a port that is no number', hosted(' 127.0.0.1:evil.example'), 400, 'closed'],
  ['3.2', 'a port of six digits', hosted(' localhost:100000'), 400, 'closed'],
  ['3.2', 'a port above 65,535', hosted(' localhost:65536'), 400, 'closed'],
  ['3.2', 'more behind an address', hosted(' [::1]evil.example'), 400, 'closed'],
  ['3.2', 'an address without its end', hosted(' [::1'), 400, 'closed'],
  ['3.2', 'an address that is none', hosted(' [::g]'), 400, 'closed'],
  ['3.2', 'a user before the host', hosted(' localhost@evil.example'), 400, 'closed'],
  ['3.2', 'a path behind the host', hosted(' localhost/'), 400, 'closed'],
  ['3.2', 'a space inside of the host', hosted(' local host'), 400, 'closed'],
  ['3.2', 'an octet above ASCII in the host', hosted(' localhost\xe9'), 400, 'closed'],
  ['3.2', 'another host', hosted(' evil.example'), 421, 'open'],
  [
    '3.2',
    'an address in brackets, with a port',
    line('GET /nothing HTTP/1.1', 'Host: [::1]:80\r\n'),
    404,
    'open',
  ],
  ['3.2', 'capitals', line('GET /nothing HTTP/1.1', 'HOST:LOCALHOST\r\n'), 404, 'open'],

  ['5', 'spaces and tabs around a value', nothing('A: \t b \t \r\n'), 404, 'open'],
  ['5', 'an empty value', nothing('A:\r\n'), 404, 'open'],
  ['5', 'every octet that a name may have', nothing("!#$%&'*+-.^_`|~0Az: b\r\n"), 404, 'open'],
  ['5', 'octets above ASCII in a value', nothing('A: \x80\xff\r\n'), 404, 'open'],
  ['5', 'a line without colon', head(`${host}nonsense\r\n`), 400, 'closed'],
  ['5', 'an empty name', head(`${host}: b\r\n`), 400, 'closed'],
  ['5', 'a space in a name', head(`${host}A b: c\r\n`), 400, 'closed'],
  ['5', 'a bracket in a name', head(`${host}A(: b\r\n`), 400, 'closed'],
  ['5', 'an octet above ASCII in a name', head(`${host}A\xe9: b\r\n`), 400, 'closed'],
  ['5', 'a NUL in a name', head(`${host}A\0: b\r\n`), 400, 'closed'],
  ['5', 'a control character in a value', head(`${host}A: \x01\r\n`), 400, 'closed'],
  ['5', 'a NUL in a value', head(`${host}A: \0\r\n`), 400, 'closed'],
  ['5', 'DEL in a value', head(`${host}A: \x7f\r\n`), 400, 'closed'],
  ['5', 'a hundred fields', nothing('X: y\r\n'.repeat(99)), 404, 'open'],
  ['5', 'a field more', head(fields(100)), 431, 'closed'],
  ['5', 'a thousand fields more', head(fields(1100)), 431, 'closed'],
  ['5', 'fields of 16 KiB', line('GET /nothing HTTP/1.1', bytes(kib16)), 404, 'open'],
  ['5', 'a byte more', head(bytes(kib16 + 1)), 431, 'closed'],
  ['5', 'a megabyte', head(fields(1) + `A: ${'x'.repeat(990)}\r\n`.repeat(1200)), 431, 'closed'],
  [
    '5',
    'a field that never ends',
    `GET / HTTP/1.1\r\n${host}X: ${'y'.repeat(kib16 + 16)}`,
    431,
    'closed',
  ],
  ['5.1', 'a space before the colon', head('Host : localhost\r\n'), 400, 'closed'],
  ['5.1', 'a tab before the colon', head(`${host}A\t: b\r\n`), 400, 'closed'],
  ['5.2', 'a folded value', head(`${host}A: b\r\n c\r\n`), 400, 'closed'],
  ['5.2', 'a value folded with a tab', head(`${host}A: b\r\n\tc\r\n`), 400, 'closed'],
  ['5.2', 'a folded Host', head('Host:\r\n localhost\r\n'), 400, 'closed'],

  ['6.1', 'chunked', coded(' chunked'), 200, 'open'],
  ['6.1', 'Chunked', coded('ChunKed '), 200, 'open'],
  [
    '6.1',
    'chunks in HTTP/1.0',
    post(`Connection: keep-alive\r\n${chunked}`, body, '1.0'),
    200,
    'closed',
  ],
  ['6.1', 'gzip', coding(' gzip'), 400, 'closed'],
  ['6.1', 'gzip inside of chunks', coding(' gzip, chunked'), 400, 'closed'],
  ['6.1', 'gzip outside of chunks', coding(' chunked, gzip'), 400, 'closed'],
  ['6.1', 'identity', coding(' identity'), 400, 'closed'],
  ['6.1', 'identity inside of chunks', coding(' identity, chunked'), 400, 'closed'],
  ['6.1', 'chunked twice', coding(' chunked, chunked'), 400, 'closed'],
  ['6.1', 'chunked in two fields', post(chunked + chunked, ''), 400, 'closed'],
  ['6.1', 'an empty coding', coding(''), 400, 'closed'],
  ['6.1', 'a parameter', coding(' chunked;q=1'), 400, 'closed'],
  ['6.1', 'quotes', coding(' "chunked"'), 400, 'closed'],
  ['6.1', 'more behind it', coding(' chunkedx'), 400, 'closed'],
  ['6.1', 'more before it', coding(' xchunked'), 400, 'closed'],
  ['6.1', 'a vertical tab before it', coding(' \vchunked'), 400, 'closed'],
  ['6.1', 'an empty element behind it', coding(' chunked,'), 400, 'closed'],
  ['6.1', 'an empty element before it', coding(' ,chunked'), 400, 'closed'],
  ['6.1', 'on a folded line', coding('\r\n chunked'), 400, 'closed'],

  ['6.2', 'a length', length(` ${good.length}`, good), 200, 'open'],
  ['6.2', 'leading zeros', length(` 000${good.length}`, good), 200, 'open'],
  ['6.2', 'spaces around it', length(`  ${good.length}  `, good), 200, 'open'],
  ['6.2', 'a plus sign', length(` +${never.length}`), 400, 'closed'],
  ['6.2', 'a minus sign', length(' -1'), 400, 'closed'],
  ['6.2', 'minus zero', length(' -0'), 400, 'closed'],
  ['6.2', 'hexadecimal digits', length(' 0x1e'), 400, 'closed'],
  ['6.2', 'a fraction', length(` ${never.length}.0`), 400, 'closed'],
  ['6.2', 'an exponent', length(' 3e1'), 400, 'closed'],
  ['6.2', 'a space inside', length(' 3 0'), 400, 'closed'],
  ['6.2', 'a letter behind it', length(` ${never.length}b`), 400, 'closed'],
  ['6.2', 'an empty length', length(''), 400, 'closed'],
  [
    '6.2',
    'a length of 2^64 and more',
    length(` ${2n ** 64n + BigInt(never.length)}`),
    400,
    'closed',
  ],
  ['6.2', 'a length of 2^32 and more', length(` ${2 ** 32 + never.length}`), 413, 'closed'],
  ['6.2', 'a length above the limit', length(' 9999999', '{'), 413, 'closed'],
  ['6.2', 'digits without end', length(` 1${'0'.repeat(1000)}`), 400, 'closed'],

  [
    '6.3',
    'a length and chunks',
    post(`Content-Length: 2\r\n${chunked}`, '0\r\n\r\n'),
    400,
    'closed',
  ],
  [
    '6.3',
    'chunks and a length',
    post(`${chunked}Content-Length: 5\r\n`, '0\r\n\r\n'),
    400,
    'closed',
  ],
  [
    '6.3',
    'both in HTTP/1.0',
    post(`${chunked}Content-Length: 5\r\n`, '0\r\n\r\n', '1.0'),
    400,
    'closed',
  ],
  ['6.3', 'two lengths', post('Content-Length: 2\r\nContent-Length: 3\r\n', '{}'), 400, 'closed'],
  [
    '6.3',
    'the same length twice',
    post('Content-Length: 2\r\nContent-Length: 2\r\n', '{}'),
    400,
    'closed',
  ],
  ['6.3', 'a list of lengths', length(' 2, 3', '{}'), 400, 'closed'],
  ['6.3', 'a list of the same length', length(' 2, 2', '{}'), 400, 'closed'],
  ['6.3', 'neither: no body', post('', ''), 400, 'open'],
  ['6.3', 'neither, in HTTP/1.0', post('', '', '1.0'), 400, 'closed'],
  ['6.3', 'no length in GET', target(goodTarget), 200, 'open'],
  [
    '6.3',
    'a length of zero in GET',
    line(`GET ${goodTarget} HTTP/1.1`, `${host}Content-Length: 0\r\n`),
    200,
    'open',
  ],
  [
    '6.3',
    'a body of GET',
    `GET ${neverTarget} HTTP/1.1\r\n${host}Content-Length: 2\r\n\r\n{}`,
    400,
    'closed',
  ],

  [
    '7.1',
    'sizes in capitals and small letters, with zeros',
    chunks(`0${size.toUpperCase()}\r\n${good}\r\n000\r\n\r\n`),
    200,
    'open',
  ],
  ['7.1', 'a size of no digits', badChunks('\r\n\r\n'), 400, 'closed'],
  ['7.1', 'a size that is none', badChunks(`5\r\n{"SQL\r\nzz\r\n`), 400, 'closed'],
  ['7.1', 'a plus sign', sized(`+${size}`), 400, 'closed'],
  ['7.1', 'a minus sign', sized(`-${size}`), 400, 'closed'],
  ['7.1', 'a prefix', sized(`0x${size}`), 400, 'closed'],
  ['7.1', 'a space before the size', sized(` ${size}`), 400, 'closed'],
  ['7.1', 'a space behind the size', sized(`${size} `), 400, 'closed'],
  ['7.1', 'a tab behind the size', sized(`${size}\t`), 400, 'closed'],
  ['7.1', 'a size of 2^64 and more', sized(`1${size.padStart(16, '0')}`), 400, 'closed'],
  ['7.1', 'a size of thirteen digits', sized(size.padStart(13, '0')), 400, 'closed'],
  ['7.1', 'a size of twelve digits', sized(size.padStart(12, '0')), 200, 'open'],
  ['7.1', 'a size without end', sized('0'.repeat(100)), 400, 'closed'],
  ['7.1', 'a bare LF behind the size', chunks(`${size}\n${good}\r\n0\r\n\r\n`), 400, 'closed'],
  ['7.1', 'a bare CR behind the size', chunks(`${size}\r${good}\r\n0\r\n\r\n`), 400, 'closed'],
  ['7.1', 'a bare LF behind a chunk', chunks(`${size}\r\n${good}\n0\r\n\r\n`), 400, 'closed'],
  ['7.1', 'nothing behind a chunk', chunks(`${size}\r\n${good}0\r\n\r\n`), 400, 'closed'],
  [
    '7.1',
    'a chunk that is longer than its size',
    chunks(`2\r\n${never}\r\n0\r\n\r\n`),
    400,
    'closed',
  ],
  [
    '7.1',
    'a chunk that is shorter than its size',
    chunks(`${size}\r\n${good.slice(1)}\r\n0\r\n\r\n`),
    400,
    'closed',
  ],
  ['7.1', 'a bare LF as the last line', chunks(`${size}\r\n${good}\r\n0\r\n\n`), 400, 'closed'],
  ['7.1.1', 'an extension', sized(`${size};a`), 200, 'open'],
  ['7.1.1', 'an extension with a value', sized(`${size};a=b;c`), 200, 'open'],
  ['7.1.1', 'a quoted value', sized(`${size};a="b;c"`), 200, 'open'],
  [
    '7.1.1',
    'an extension of the last chunk',
    chunks(`${size}\r\n${good}\r\n0;a=b\r\n\r\n`),
    200,
    'open',
  ],
  ['7.1.1', 'a bare LF in it', sized(`${size};a\nb`), 400, 'closed'],
  ['7.1.1', 'a bare CR in it', sized(`${size};a\rb`), 400, 'closed'],
  ['7.1.1', 'a line end in quotes', sized(`${size};a="\r\n"`), 400, 'closed'],
  ['7.1.1', 'a line of 1 KiB', sized(`${size};${'a'.repeat(1024 - size.length - 1)}`), 200, 'open'],
  ['7.1.1', 'a byte more', sized(`${size};${'a'.repeat(1024 - size.length)}`), 400, 'closed'],
  ['7.1.2', 'trailers', trailed('A: b\r\nC:\r\n'), 200, 'open'],
  ['7.1.2', 'a length in the trailers', trailed('Content-Length: 5\r\n'), 400, 'closed'],
  ['7.1.2', 'a coding in the trailers', trailed('Transfer-Encoding: gzip\r\n'), 400, 'closed'],
  ['7.1.2', 'a Host in the trailers', trailed('Host: evil.example\r\n'), 200, 'open'],
  ['7.1.2', 'a trailer without colon', trailed('nonsense\r\n'), 400, 'closed'],
  ['7.1.2', 'a space before the colon of a trailer', trailed('A : b\r\n'), 400, 'closed'],
  ['7.1.2', 'a folded trailer', trailed('A: b\r\n c\r\n'), 400, 'closed'],
  ['7.1.2', 'a bare LF behind a trailer', trailed('A: b\nC: d\r\n'), 400, 'closed'],
  ['7.1.2', 'a bare CR in a trailer', trailed('A: b\rC: d\r\n'), 400, 'closed'],
  [
    '7.1.2',
    'trailers of 16 KiB, with the line end',
    trailed(`X: ${'y'.repeat(kib16 - 5)}\r\n`),
    200,
    'open',
  ],
  [
    '7.1.2',
    'a byte more, without the line end',
    trailed(`X: ${'y'.repeat(kib16 - 2)}\r\n`),
    400,
    'closed',
  ],

  ['9.3', 'nothing of Connection', nothing(''), 404, 'open'],
  ['9.3', 'HTTP/1.0 with keep-alive', nothing('Connection: Keep-Alive\r\n', '1.0'), 404, 'open'],
  ['9.3', 'HTTP/1.0 without', nothing('', '1.0'), 404, 'closed'],
  ['9.6', 'close', nothing('Connection: close\r\n'), 404, 'closed'],
  ['9.6', 'close among others', nothing('Connection: X-A, Close\r\n'), 404, 'closed'],
];
