// What a token stands for and a failover has lost: told with 409, never older in silence; what was kept is seen on the new primary.
// Must not know what stands in a token.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replicationHere, startReplication } from '../../support/clusters/replication.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';

test('after a failover a token shows what was kept, and says 409 TOKEN_LOST of what was lost', async (t) => {
  if (!replicationHere(t)) return;
  const set = await startReplication();
  const former = set.primary();
  await former.query('create table notes (id int primary key)');
  await set.waitForCatchUp();
  const gateway = await startGateway({
    database: set.target,
    settings: { reads: 'replicas', workers: 1 },
  });
  try {
    const write = (id: number) => gateway.dbPost({ SQL: `insert into notes values (${id})` });
    const kept = await write(1);
    await set.waitForCatchUp();
    for (const replica of set.replicas()) await replica.query('stop slave io_thread');
    const lost = await write(2);
    assert.equal(lost.status, 200, lost.text);
    await former.kill();
    const [promoted] = set.replicas();
    assert.ok(promoted);
    await set.promote(promoted);
    await eventually('the new primary is written to', async () => (await write(3)).status === 200);

    const headersOf = ({ headers }: typeof lost) => ({
      headers: { 'X-Consistency-Token': String(headers['x-consistency-token']) },
    });
    const ids = { SQL: "select group_concat('n', id order by id) from notes" };
    for (const asked of [ids, { ...ids, READ_ONLY: true }]) {
      const seen = await gateway.dbPost(asked, headersOf(kept));
      assert.equal(seen.status, 200, seen.text);
      assert.match(seen.text, /n1/);
    }
    const insert = 'insert into notes values (4)';
    for (const reply of [
      await gateway.dbPost(ids, headersOf(lost)),
      await gateway.dbPost({ ...ids, READ_ONLY: true }, headersOf(lost)),
      await gateway.dbPost({ SQL: insert }, headersOf(lost)),
      await gateway.post('/v1/query', { sql: ids.SQL, read_only: true }, headersOf(lost)),
      await gateway.post('/v1/query', { sql: insert }, headersOf(lost)),
      await gateway.post('/v1/batch', { statements: [{ sql: insert }] }, headersOf(lost)),
      await gateway.post(
        '/v1/query',
        { sql: "select repeat('x', 60000) from seq_1_to_20" },
        headersOf(lost),
      ),
    ]) {
      assert.equal(reply.status, 409, reply.text.slice(0, 500));
      assert.match(reply.text, /TOKEN_LOST/);
      assert.equal(reply.headers['x-consistency-token'], undefined);
    }
    const there = await promoted.query('select id from notes order by id');
    assert.deepEqual(
      there.map(({ id }) => id),
      [1, 3],
      'no write beside a lost token was run',
    );
  } finally {
    await gateway.stop();
    await set.stop();
  }
});
