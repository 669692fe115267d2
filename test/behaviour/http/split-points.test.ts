// The promise that segments mean nothing: a pipelined sequence of requests of all forms gets the same replies wherever it is cut in two.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exchange, openRaw, type RawConnection, type RawReply } from '../../support/http.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway } = useGateway({ workers: 1, pool: 4 });

const host = 'Host: localhost\r\n';
const json = 'Content-Type: application/json\r\n';
const body = (word: string) => `{"SQL":"select '${word}'"}`;
const post = (headers: string, content: string) =>
  `POST /db HTTP/1.1\r\n${host}${json}${headers}\r\n${content}`;
const length = (word: string) => `Content-Length: ${body(word).length}\r\n`;
const chunked = body('chunked');
const chunks = `3;a="b;c"\r\n${chunked.slice(0, 3)}\r\n${(chunked.length - 3).toString(16)}\r\n${chunked.slice(3)}\r\n0\r\nA: b\r\n\r\n`;

/** The requests, and the word in the reply to each; HEAD is the fourth. */
const requests = [
  [`GET /db?${encodeURIComponent(body('get'))} HTTP/1.1\r\n${host}\r\n`, '"get"'],
  [post(length('length'), body('length')), '"length"'],
  [post('Transfer-Encoding: chunked\r\n', chunks), '"chunked"'],
  [`HEAD /nothing HTTP/1.1\r\n${host}\r\n`, ''],
  [post(`Expect: 100-continue\r\n${length('expected')}`, body('expected')), '"expected"'],
  [`\r\nGET /db?${encodeURIComponent(body('last'))} HTTP/1.1\r\n${host}\r\n`, '"last"'],
] as const;
const all = Buffer.from(requests.map(([text]) => text).join(''));

/** A reply without what differs from one to the next. */
function essenceOf({ status, headers, body: content }: RawReply): string {
  const changing = /^(?:x-request-id|server-timing|date)$/i;
  const kept = headers.filter(([name]) => !changing.test(name));
  return JSON.stringify([status, kept, String(content)]);
}

/** Reads the replies to some of the requests. */
async function read(client: RawConnection, from: number, to: number): Promise<readonly string[]> {
  const replies: string[] = [];
  for (const [text] of requests.slice(from, to)) {
    replies.push(essenceOf(await client.reply({ toHead: text.startsWith('HEAD') })));
  }
  return replies;
}

/** The ends of the requests, and how many of them are whole before a cut. */
const ends = requests.map(
  (_, n) =>
    requests
      .slice(0, n + 1)
      .map(([text]) => text)
      .join('').length,
);
const wholeBefore = (cut: number) => ends.filter((end) => end <= cut).length;

/** Resolves once the worker has read what was sent on other connections before: it reads in the order in which bytes arrive. */
async function workerHasRead(): Promise<void> {
  assert.equal((await exchange(gateway.port, `GET /livez HTTP/1.1\r\n${host}\r\n`)).status, 200);
}

/** The worker goes on with no more connections than this in one turn. */
const atATime = 16;

test(`gives the same replies for each of ${all.length - 1} places to cut it`, async () => {
  const whole = await openRaw(gateway.port);
  whole.send(all);
  const expected = await read(whole, 0, requests.length);
  whole.close();
  for (const [n, [, word]] of requests.entries()) {
    assert.ok(expected[n]?.includes(word.replaceAll('"', '\\"')), word);
  }
  for (let first = 1; first < all.length; first += atATime) {
    const cuts = Array.from({ length: Math.min(atATime, all.length - first) }, (_, n) => first + n);
    const clients = await Promise.all(
      cuts.map(async (cut) => ({
        cut,
        count: wholeBefore(cut),
        connection: await openRaw(gateway.port, { tellsResets: false }),
      })),
    );
    for (const { cut, connection } of clients) connection.send(all.subarray(0, cut));
    // A request is parsed when those before it are answered: the worker must have the bytes before the cut alone.
    const before = await Promise.all(
      clients.map(({ count, connection }) => read(connection, 0, count)),
    );
    await workerHasRead();
    for (const { cut, connection } of clients) connection.send(all.subarray(cut));
    const behind = await Promise.all(
      clients.map(({ cut, count, connection }) =>
        read(connection, count, requests.length).catch((cause: unknown) => {
          throw new Error(`cut at ${cut}`, { cause });
        }),
      ),
    );
    for (const [n, { cut, connection }] of clients.entries()) {
      const replies = [...(before[n] ?? []), ...(behind[n] ?? [])];
      assert.deepEqual(replies, expected, `cut at ${cut}`);
      assert.equal(connection.received(), '');
      connection.socket.destroy();
    }
  }
});
