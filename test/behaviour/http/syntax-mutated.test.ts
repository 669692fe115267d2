// The promise about bytes that nobody has thought of: what runs is what a strict reader of the same bytes finds, whole
// requests before the first odd byte are answered, and no connection is left without an answer. The seed is fixed.
import assert from 'node:assert/strict';
import test from 'node:test';
import { openRaw } from '../../support/http.ts';
import { observeGateway } from './support/observed-gateway.ts';
import { readStrictly, type StrictRequest } from './support/strict-http.ts';

const { gateway, proxy } = observeGateway();
const rounds = 250;
let state = 20_261_122;

/** An integer below `limit`: mulberry32. */
function random(limit: number): number {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % limit;
}

const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)] as Item;

const host = 'Host: localhost\r\n';
const json = 'Content-Type: application/json\r\n';
let count = 0;
function sql(): string {
  count += 1;
  return `{"SQL":"select ${count} /* fuzz${count}x */"}`;
}
const get = () => `GET /db?${encodeURIComponent(sql())} HTTP/1.1\r\n${host}\r\n`;

function post(): string {
  const body = sql();
  return `POST /db HTTP/1.1\r\n${host}${json}Content-Length: ${body.length}\r\n\r\n${body}`;
}

function chunked(): string {
  const body = sql();
  const cut = 1 + random(body.length - 1);
  const chunks = [body.slice(0, cut), body.slice(cut)];
  const framed = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
  return `POST /db HTTP/1.1\r\n${host}${json}Transfer-Encoding: chunked\r\n\r\n${framed}0\r\n\r\n`;
}

/** A body that is itself a request: run only by who loses count. */
function nested(): string {
  const body = get();
  return `POST /db HTTP/1.1\r\n${host}${json}Content-Length: ${body.length}\r\n\r\n${body}`;
}

const upgrade = () => get().replace(host, `${host}Connection: Upgrade\r\nUpgrade: h2c\r\n`);
const kinds = [get, get, post, chunked, nested, upgrade];

const oddBytes = [
  ' ',
  '\r',
  '\n',
  '\r\n',
  '\t',
  ':',
  ';',
  '0',
  '9',
  'a',
  'Z',
  '/',
  '?',
  '\0',
  '\x80',
  ',',
];
const oddLines = [
  'Content-Length: 5',
  'Content-Length: 0',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'Host: evil.example',
  'Upgrade: h2c',
  'Connection: close',
  'Expect: 100-continue',
  'GET / HTTP/1.1',
];

/** One change at `at`. */
function mutate(text: string, at: number): string {
  const [before, behind] = [text.slice(0, at), text.slice(at)];
  switch (random(5)) {
    case 0:
      return before + pick(oddBytes) + behind;
    case 1:
      return before + pick(oddBytes) + behind.slice(1);
    case 2:
      return before + behind.slice(1 + random(4));
    case 3:
      return before + behind.slice(0, 12) + behind;
    default: {
      const lineEnd = text.indexOf('\r\n', at);
      return lineEnd < 0
        ? before
        : `${text.slice(0, lineEnd)}\r\n${pick(oddLines)}${text.slice(lineEnd)}`;
    }
  }
}

/** Sends in pieces, and resolves when the connection has ended or so many replies have come and then nothing. */
async function send(
  text: string,
  replies: number,
): Promise<{ statuses: number[]; ended: boolean }> {
  const client = await openRaw(gateway.port, { tellsResets: false, timeoutMs: 20_000 });
  const bytes = Buffer.from(text, 'latin1');
  const pieces = 1 + random(4);
  const statuses: number[] = [];
  try {
    for (let n = 0; n < pieces; n += 1) {
      const [from, to] = [n, n + 1].map((part) => Math.floor((part * bytes.length) / pieces));
      await new Promise<void>((resolve) =>
        client.socket.write(bytes.subarray(from, to), () => setImmediate(resolve)),
      );
    }
    while (statuses.length < replies) {
      const reply = await client.reply();
      statuses.push(reply.status);
      if (reply.header('connection') === 'close') return { statuses, ended: true };
    }
    return { statuses, ended: false };
  } finally {
    client.socket.destroy();
  }
}

const idsIn = (text: string) => [...text.matchAll(/fuzz(\d+)x/g)].map(([, id]) => id as string);

/** The marks of what a strict reader would run. */
function allowedBy(requests: readonly StrictRequest[]): Set<string> {
  return new Set(
    requests
      .filter(({ path }) => path === '/db' || path === '/db/')
      .flatMap(({ method, query, body }) => {
        if (method === 'GET') return body === '' ? idsIn(unescape(query)) : [];
        return method === 'POST' && body.startsWith('{') ? idsIn(body) : [];
      }),
  );
}

test(`runs nothing but what a strict reader finds in ${rounds} connections with an odd byte each`, async () => {
  for (let round = 0; round < rounds; round += 1) {
    const parts = Array.from({ length: 1 + random(4) }, () => pick(kinds)());
    const text = parts.join('');
    const at = random(text.length);
    const mutated = mutate(text, at);
    const seen = proxy.statements.length;
    // Those that end before the change, up to the first whose reply closes the connection.
    const whole = readStrictly(text.slice(0, at)).length;
    const told = JSON.stringify({ round, mutated });
    const { statuses, ended } = await send(mutated, whole).catch((error: unknown) => {
      throw new Error(`no answer: ${told}`, { cause: error });
    });
    assert.ok(ended || statuses.length === whole, told);
    await gateway.db({ SQL: 'select 1' });
    const allowed = allowedBy(readStrictly(mutated));
    for (const statement of proxy.statements.slice(seen)) {
      for (const id of idsIn(statement)) assert.ok(allowed.has(id), `${statement}: ${told}`);
    }
  }
});
