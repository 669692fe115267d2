// On a Node whose undocumented internals differ from those that the gateway knows, it serves all the same, and reports that it costs more.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { cellOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';
import type { Settings } from '../../support/ini-text.ts';
import { createWorkspace } from '../../support/workspace.ts';

const hook = new URL('./support/other-insides.js', import.meta.url).href;

let database: Database;
const gateways: Gateway[] = [];
async function start(options: string, more: Settings = {}): Promise<Gateway> {
  const settings = { workers: 1, pool: 4, ...more };
  const gateway = await startGateway({ database, settings, env: { NODE_OPTIONS: options } });
  gateways.push(gateway);
  return gateway;
}
before(async () => {
  database = await startDatabase();
  await start('');
  await start(`--import ${hook}`);
  await start(`--import ${hook}?parser`);
});
after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await database?.stop();
});

function post(sql: string, more = ''): string {
  const body = JSON.stringify({ SQL: sql });
  const head = `Host: localhost\r\nContent-Type: application/json\r\n${more}`;
  return `POST /db HTTP/1.1\r\n${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const warnings = (gateway: Gateway) =>
  [...gateway.log().matchAll(/ WARN .*node's internals.*/gi)].map(([line]) => line);

for (const [index, which] of [
  'as they are known',
  'others',
  'others, and a parser that stays',
].entries()) {
  const own = (): Gateway => {
    const gateway = gateways[index];
    assert.ok(gateway);
    return gateway;
  };

  test(`insides ${which}: small and large replies are whole`, async () => {
    const small = await own().dbPost({ SQL: "select 'é', 2" });
    assert.equal(cellOf(small), 'é');
    assert.equal(small.headers['content-length'], String(small.body.length));
    const length = 6_000_000;
    const large = await own().db({ SQL: `select repeat('x', ${length})` });
    assert.equal(String(cellOf(large)).length, length);
  });

  test(`insides ${which}: uploads arrive as they were sent`, async () => {
    const text = 'äbcdefg'.repeat(60_000);
    assert.equal(
      cellOf(
        await own().dbPost({
          SQL: `select sha2('${text}', 224) = sha2(repeat('äbcdefg', 60000), 224)`,
        }),
      ),
      1,
    );
  });

  test(`insides ${which}: pipelined requests are answered in order`, async () => {
    const client = await openRaw(own().port);
    const count = 50;
    client.send(Array.from({ length: count }, (_, n) => post(`select ${n}`)).join(''));
    for (let n = 0; n < count; n += 1) {
      const { status, body } = await client.reply();
      assert.deepEqual([status, /"ROWS":\[\[(\d+)\]/.exec(String(body))?.[1]], [200, String(n)]);
    }
    assert.equal(client.unread(), 0);
    client.close();
  });

  test(`insides ${which}: a client that closes gets its reply and the end`, async () => {
    const client = await openRaw(own().port);
    client.send(post('select 1', 'Connection: close\r\n'));
    const reply = await client.reply();
    assert.deepEqual([reply.status, reply.header('connection')], [200, 'close']);
    assert.equal(await client.ended(), 'fin');
  });

  test(`insides ${which}: bytes that are not HTTP are refused, even while the client goes on sending`, async () => {
    const client = await openRaw(own().port);
    client.send('GET /db HTTP/1.1\nHost: localhost\r\n\r\n');
    for (let n = 0; n < 20; n += 1) client.send('x'.repeat(100_000));
    assert.equal((await client.reply()).status, 400);
    client.close();
  });
}

test('one line in the log reports it, and none if they are the known ones', () => {
  const [known, others, staying] = gateways;
  assert.ok(known && others && staying);
  assert.deepEqual(warnings(known), []);
  const [line, ...more] = warnings(others);
  assert.match(
    line ?? '',
    /replies at once, shared reads, bytes taken|bytes taken, replies at once, shared reads/,
  );
  assert.deepEqual(more, []);
  assert.match(warnings(staying)[0] ?? '', /taken parser/);
});

test('if a worker cannot listen on a unix socket, the gateway does not start, and reports why', async () => {
  const workspace = createWorkspace('unix', () => {});
  try {
    await assert.rejects(
      start(`--import ${hook}`, { listen: join(workspace.path, 'http') }),
      /exit 69\n(.|\n)*does not let a worker listen on a unix socket/,
    );
  } finally {
    workspace.remove();
  }
});

test('if Node does not reveal what it has bound, the gateway does not start, and reports why', async () => {
  await assert.rejects(
    start(`--import ${hook}?descriptor`),
    /exit 69\n(.|\n)*does not tell a server's descriptor/,
  );
});
