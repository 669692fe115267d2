// The promise of a machine without WebAssembly: the same documents, written one row at a time, and a word in the log.
// Must not measure time.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

let database: Database;
let gateways: Gateway[] = [];
before(async () => {
  database = await startDatabase();
  await database.query('create table digits (d int primary key)');
  await database.query('insert into digits values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)');
  await database.query(
    `create table many as select n, -n/7e0 as d, if(n % 3, repeat('text "\n', n % 200), null) as t,
     unhex(sha2(n, 224)) as h, b'101' as b, '2007-11-07' + interval n minute as m
     from (select w.d*1000+x.d*100+y.d*10+z.d as n from digits w, digits x, digits y, digits z) numbers`,
  );
  // Jitless V8 has no WebAssembly.
  const env = { NODE_OPTIONS: '--jitless' };
  gateways = await Promise.all([startGateway({ database }), startGateway({ database, env })]);
});
after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await database?.stop();
});

test('answers with the same bytes with WebAssembly and without, and says when it is without', async () => {
  for (const SQL of ['select * from many order by n limit 5', 'select * from many order by n']) {
    const [many, single] = await Promise.all(gateways.map(({ db }) => db({ SQL })));
    assert.equal(many?.status, 200);
    assert.ok(many?.body.equals(single?.body as Buffer), SQL);
  }
  const [many, single] = gateways.map(({ log }) => log());
  assert.doesNotMatch(many ?? '', /without WebAssembly/);
  assert.match(single ?? '', /warn.*rows are written without WebAssembly/);
});
