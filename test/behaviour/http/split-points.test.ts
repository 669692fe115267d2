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

async function readAll(client: RawConnection): Promise<readonly string[]> {
  const replies: string[] = [];
  for (const [text] of requests) {
    replies.push(essenceOf(await client.reply({ toHead: text.startsWith('HEAD') })));
  }
  assert.equal(client.received(), '');
  return replies;
}

/** Resolves once the worker has read what was sent on other connections before: it reads in the order in which bytes arrive. */
async function workerHasRead(): Promise<void> {
  assert.equal((await exchange(gateway.port, `GET /livez HTTP/1.1\r\n${host}\r\n`)).status, 200);
}

const atATime = 100;

test(`gives the same replies for each of ${all.length - 1} places to cut it`, async () => {
  const whole = await openRaw(gateway.port);
  whole.send(all);
  const expected = await readAll(whole);
  whole.close();
  for (const [n, [, word]] of requests.entries())
    assert.ok(expected[n]?.includes(word.replaceAll('"', '\\"')), word);
  for (let first = 1; first < all.length; first += atATime) {
    const cuts = Array.from({ length: Math.min(atATime, all.length - first) }, (_, n) => first + n);
    const clients = await Promise.all(
      cuts.map(() => openRaw(gateway.port, { tellsResets: false })),
    );
    for (const [n, cut] of cuts.entries()) clients[n]?.send(all.subarray(0, cut));
    await workerHasRead();
    for (const [n, cut] of cuts.entries()) clients[n]?.send(all.subarray(cut));
    const replies = await Promise.all(clients.map(readAll));
    for (const [n, cut] of cuts.entries()) assert.deepEqual(replies[n], expected, `cut at ${cut}`);
    for (const { socket } of clients) socket.destroy();
  }
});
