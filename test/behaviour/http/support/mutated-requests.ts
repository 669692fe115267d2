// Requests with one odd change each, drawn by a seed, and what a strict reader of the same bytes would run.
import { readStrictly } from './strict-http.ts';

const host = 'Host: localhost\r\n';
const json = 'Content-Type: application/json\r\n';

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

/** The requests of one connection. */
export type Mutated = {
  readonly text: string;
  /** The number of complete requests that end before the change. */
  readonly whole: number;
};

/** Draws what is sent, and integers below a limit; the same ones for the same seed. */
export function createMutations(seed: number): {
  readonly random: (limit: number) => number;
  readonly draw: () => Mutated;
} {
  let state = seed;

  /** An integer below `limit`: mulberry32. */
  function random(limit: number): number {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  }

  const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)] as Item;

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

  /** A body that is itself a request: only a server that loses count runs it. */
  function nested(): string {
    const body = get();
    return `POST /db HTTP/1.1\r\n${host}${json}Content-Length: ${body.length}\r\n\r\n${body}`;
  }

  const upgrade = () => get().replace(host, `${host}Connection: Upgrade\r\nUpgrade: h2c\r\n`);
  const kinds = [get, get, post, chunked, nested, upgrade];

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

  return {
    random,
    draw: () => {
      const text = Array.from({ length: 1 + random(4) }, () => pick(kinds)()).join('');
      const at = random(text.length);
      return { text: mutate(text, at), whole: readStrictly(text.slice(0, at)).length };
    },
  };
}

/** The marks of the statements in a text. */
export const idsIn = (text: string) =>
  [...text.matchAll(/fuzz(\d+)x/g)].map(([, id]) => id as string);

/** The marks of what a strict reader would run. */
export function idsAllowedIn(text: string): ReadonlySet<string> {
  const requests = readStrictly(text);
  return new Set(
    requests
      .filter(({ path }) => path === '/db' || path === '/db/')
      .flatMap(({ method, query, body }) => {
        if (method === 'GET') return body === '' ? idsIn(unescape(query)) : [];
        return method === 'POST' && body.startsWith('{') ? idsIn(body) : [];
      }),
  );
}
