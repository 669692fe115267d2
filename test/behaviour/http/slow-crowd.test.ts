// The promise that clients that are slow with their heads, a thousand of them, cost a good client nothing but its turn.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openRaw, type RawConnection } from '../../support/http.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

const crowd = 1_000;
const atATime = 200;
const rounds = 6;
/** The time for a head, which a busy machine may need for all rounds. */
const headMs = 20_000;

const { gateway } = useGateway({ workers: 1, pool: 2 });
const slow: RawConnection[] = [];
// By RST: a thousand connections that wait for their last packets would block other tests for a minute.
after(() => {
  for (const { socket } of slow) socket.resetAndDestroy();
});

test(`${crowd} clients that send a byte of a head now and then: a good one is answered each time, and they are at last`, async () => {
  const fromMs = performance.now();
  while (slow.length < crowd) {
    const more = Array.from({ length: atATime }, () =>
      openRaw(gateway.port, { tellsResets: false }),
    );
    slow.push(...(await Promise.all(more)));
  }
  const good = await openRaw(gateway.port);
  const head = 'GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n';
  for (let round = 0; round < rounds; round += 1) {
    for (const { socket } of slow) socket.write(head.charAt(round));
    good.send(`GET /db?{"SQL":"select+${round}"} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    const reply = await good.reply();
    assert.match(String(reply.body), new RegExp(`"ROWS":\\[\\[${round}\\]\\]`));
  }
  const connected = await readMetric(gateway, 'dbhttpd_client_connections');
  const tookMs = performance.now() - fromMs;
  if (tookMs < headMs) assert.ok(connected > crowd, `${connected} connections`);
  for (const { socket } of slow) socket.write(head.slice(rounds));
  const replies = await Promise.all(slow.map((client) => client.reply()));
  const statuses = new Set(replies.map(({ status }) => status));
  assert.deepEqual([...statuses], performance.now() - fromMs < headMs ? [404] : [...statuses]);
  good.close();
});
