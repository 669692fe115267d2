// Turns of clients while a section has no server at all: their requests wait for one, and no client can take all places.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { endRequest } from '../../support/reports.ts';

const file = createClientsFile({
  loud: { allow: 'sql' },
  quiet: { allow: 'sql' },
  anonymous: { allow: 'metrics' },
});
let gateway: Gateway;
before(async () => {
  gateway = await startGateway({
    // Nothing listens on these ports.
    database: { host: '127.0.0.1:1, 127.0.0.1:2', user: 'app', password: '', name: 'world' },
    settings: { workers: 1, queue: 3, max_wait: '1m', statement_timeout: '5m', clients: file.path },
  });
});
after(async () => {
  await gateway?.stop();
  file.remove();
});

test('a full queue rejects the newest request of the client that has the most there', async () => {
  const ended: string[] = [];
  const ask = (client: string, name: string) => {
    const headers = { ...bearing(tokenOf(client)), 'X-Request-ID': name };
    const asked = gateway.post('/v1/query', { sql: 'select 1' }, { headers });
    return asked.then((reply) => {
      const { code, outcome } = reply.json<{ code: string; outcome: string }>();
      ended.push(`${name}: ${reply.status} ${code} ${outcome}`);
    });
  };
  const waitingOf = (client: string, count: number) =>
    eventually(`${count} requests of ${client} wait`, async () =>
      (await gateway.get('/metrics')).text.includes(
        `dbhttpd_client_requests_waiting{section="world",slot="0",client="${client}"} ${count}\n`,
      ),
    );
  const all: Promise<void>[] = [];
  for (const n of [1, 2, 3]) {
    all.push(ask('loud', `loud ${n}`.replace(' ', '-')));
    await waitingOf('loud', n);
  }
  await ask('loud', 'loud-4');
  assert.deepEqual(ended, ['loud-4: 503 QUEUE_FULL not_executed']);
  all.push(ask('quiet', 'quiet-1'));
  await all[2];
  await waitingOf('quiet', 1);
  assert.deepEqual(ended.slice(1), ['loud-3: 503 QUEUE_FULL not_executed']);
  await ask('quiet', 'quiet-2');
  assert.deepEqual(ended.slice(2), ['quiet-2: 503 QUEUE_FULL not_executed']);
  for (const id of ['loud-1', 'loud-2', 'quiet-1']) {
    const headers = bearing(tokenOf(id.replace(/-.*/, '')));
    await endRequest(gateway, id, { headers });
  }
  await Promise.all(all);
});
