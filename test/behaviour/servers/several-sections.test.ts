// Several databases in one daemon (-m): each request reaches the one it names, with its own pool, limits and keys; one that is down does not affect the others.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { Reply } from '../../support/ask.ts';
import { runBash } from '../../support/bash.ts';
import { holdAnswer, timesSent } from '../../support/busy-pool.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { eventually } from '../../support/eventually.ts';
import { sumOf } from '../../support/exposition.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import type { Settings } from '../../support/ini-text.ts';
import { readMetric, scrape } from '../../support/scrape.ts';
import { createWorkspace } from '../../support/workspace.ts';

const names = ['world', 'shop'] as const;
type Name = (typeof names)[number];

let databases: Readonly<Record<Name, Database>>;
let proxies: Readonly<Record<Name, ProxiedDatabase>>;

before(async () => {
  databases = { world: await startDatabase(), shop: await startDatabase() };
  for (const name of names) {
    const database = databases[name];
    const keys = name === 'world' ? 'request_keys' : 'shop_keys';
    await database.query(`
      create table t (id int primary key, v varchar(20));
      insert into t values (1, '${name}'), (2, 'two'), (3, 'three');
      create table written (id int);
      ${describeCreation(parseIdempotencyTable(keys, database.name))}`);
    await createGate(database);
  }
  const { world, shop } = databases;
  proxies = { world: await startProxiedDatabase(world), shop: await startProxiedDatabase(shop) };
});
after(async () => {
  await shared?.stop();
  workspace.remove();
  await databases?.shop.query(`drop user if exists '${renewedUser}'@'%'`);
  for (const name of names) {
    await proxies?.[name].stop();
    await databases[name].stop();
  }
});

afterEach(() => {
  for (const name of names) proxies[name].release();
});

/** A directory for the password that a test changes, and the account that it belongs to. */
const workspace = createWorkspace('sections', () => undefined);
const passwordFile = join(workspace.path, 'password');
const renewedUser = `shop_${process.pid}`;

/** The gateway of all tests that neither stop it nor need all of its sections; null until one needs it. */
let shared: Gateway | null = null;

/** Tests of a section's own properties have separate sections, named after their purpose. */
async function startShared(): Promise<Gateway> {
  const keys = { idempotency_table: 'request_keys' };
  const { world, shop } = proxies;
  const coalescing = { coalesce: 'on', pool: 1 };
  writeFileSync(passwordFile, 'one\n', { mode: 0o600 });
  await databases.shop.query(`create user '${renewedUser}'@'%' identified by 'one'`);
  await databases.shop.query(`grant select on ${databases.shop.name}.* to '${renewedUser}'@'%'`);
  return startGateway({
    database: world.target,
    settings: { workers: 1, pool: 2, ...keys },
    beside: {
      // Another name of the same host, which replies may show.
      shop: {
        database: shop.target,
        settings: { pool: 2, host: 'localhost', idempotency_table: 'shop_keys' },
      },
      // The first section's database and table.
      mirror: { database: world.target, settings: keys },
      bare: { database: world.target },
      narrow: { database: shop.target, settings: { pool: 1, queue: 1 } },
      limited: {
        database: shop.target,
        settings: { pool: 2, max_rows: 2, read_only: 'on' },
      },
      hurried: { database: shop.target, settings: { pool: 1, statement_timeout: '500ms' } },
      coalescing_world: { database: world.target, settings: coalescing },
      coalescing_shop: { database: shop.target, settings: coalescing },
      counted_world: { database: world.target, settings: { pool: 2 } },
      counted_shop: { database: shop.target, settings: { pool: 2 } },
      renewed: {
        database: { ...shop.target, user: renewedUser, password: '' },
        settings: { password_file: passwordFile },
      },
    },
  });
}

async function withSharedGateway(use: (gateway: Gateway) => Promise<void>): Promise<void> {
  shared ??= await startShared();
  await use(shared);
}

/** Starts a gateway with these two sections alone, has it used, and stops it. */
async function withGateway(
  use: (gateway: Gateway) => Promise<void>,
  shop: Settings = {},
): Promise<void> {
  const gateway = await startGateway({
    database: proxies.world.target,
    settings: { workers: 1, pool: 2 },
    beside: {
      shop: { database: proxies.shop.target, settings: { pool: 2, ...shop } },
    },
  });
  try {
    await use(gateway);
  } finally {
    await gateway.stop();
  }
}

const valueSql = 'select v from t where id = 1';
const cellOf = (reply: Reply) => reply.json<{ RESULT: { ROWS: string[][] } }>().RESULT.ROWS[0]?.[0];

test('each request reaches the section that it names, or the first one, and its reply names the section', async () => {
  await withSharedGateway(async (gateway) => {
    for (const SERVER of [undefined, ...names]) {
      const asked = { SQL: valueSql, SERVER, SERVER_NAME: true };
      for (const reply of [await gateway.db(asked), await gateway.dbPost(asked)]) {
        const { SERVER: reported, SERVER_NAME: name } = reply.json<Record<string, string>>();
        assert.deepEqual([cellOf(reply), reported, name], Array(3).fill(SERVER ?? 'world'));
      }
      const one = { sql: valueSql };
      const query = await gateway.post('/v1/query', { ...one, section: SERVER });
      const batch = await gateway.post('/v1/batch', { statements: [one], section: SERVER });
      const { rows, section } = query.json<{ rows: string[][]; section: string }>();
      const all = batch.json<{ results: { rows: string[][] }[]; section: string }>();
      assert.deepEqual(
        [rows, section, all.results[0]?.rows, all.section],
        [[[SERVER ?? 'world']], SERVER ?? 'world', [[SERVER ?? 'world']], SERVER ?? 'world'],
      );
    }
  });
});

test('a reply about a server is about the requested section', async () => {
  await withSharedGateway(async (gateway) => {
    const asked = { HOST_INFO: true, SERVER_NAME: true };
    const reported = async (SERVER: Name) =>
      (await gateway.db({ ...asked, SERVER })).json<Record<string, string>>();
    assert.equal((await reported('world')).HOST_INFO, '127.0.0.1 via TCP/IP');
    const { HOST_INFO, SERVER_NAME } = await reported('shop');
    assert.deepEqual([HOST_INFO, SERVER_NAME], ['localhost via TCP/IP', 'shop']);
    assert.equal((await gateway.db({ STAT: true, SERVER: 'shop' })).status, 200);
  });
});

test('a section that is not served is refused with a list of those that are, and nothing is executed', async () => {
  await withSharedGateway(async (gateway) => {
    const never = "select 'for no section'";
    const one = { sql: never };
    const replies = [
      await gateway.db({ SQL: never, SERVER: 'Shop' }),
      await gateway.dbPost({ SQL: never, SERVER: '__proto__' }),
      await gateway.post('/v1/query', { ...one, section: 'elsewhere' }),
      await gateway.post('/v1/batch', { statements: [one], section: '' }),
    ];
    for (const { status, text } of replies) {
      assert.equal(status, 400);
      assert.match(text, /WRONG_SERVER/);
      assert.match(text, /is not served here\. This client may use \\"world\\", \\"shop\\"/);
    }
    for (const name of names) assert.equal(timesSent(proxies[name], never), 0);
  });
});

test('pool and queue are each section’s own: one that is full refuses, and the other one serves', async () => {
  await withSharedGateway(async (gateway) => {
    const ask = () => gateway.dbPost({ SQL: "select 'kept'", SERVER: 'narrow' });
    // Its catalogue is read on its only session, before the next question.
    await ask();
    const first = await holdAnswer(proxies.shop, "select 'kept'", ask);
    const second = ask();
    const waits = (section: string) => readMetric(gateway, 'dbhttpd_queue_length', { section });
    await eventually('one runs, one waits', async () => (await waits('narrow')) === 1);
    const refused = await gateway.dbPost({ SQL: valueSql, SERVER: 'narrow' });
    assert.equal(refused.status, 503);
    assert.equal(refused.json<{ CODE: string }>().CODE, 'QUEUE_FULL');
    assert.equal(cellOf(await gateway.dbPost({ SQL: valueSql })), 'world');
    assert.equal(await waits('world'), 0);
    proxies.shop.release();
    for (const reply of await Promise.all([first.reply, second])) assert.equal(reply.status, 200);
  });
});

test('deadline, row limit and read_only are each section’s own', async () => {
  await withSharedGateway(async (gateway) => {
    const all = 'select id from t order by id';
    const rowsOf = async (SERVER: string) => {
      const reply = await gateway.db({ SQL: all, SERVER });
      return reply.json<{ RESULT: { ROWS: unknown[] } }>().RESULT.ROWS.length;
    };
    assert.deepEqual([await rowsOf('world'), await rowsOf('limited')], [3, 2]);
    const cut = await gateway.post('/v1/query', { sql: all, section: 'limited' });
    assert.equal(cut.json<{ truncated: boolean }>().truncated, true);

    const slow = (SERVER: string) =>
      gateway.db({ SQL: 'select sleep(1)', SERVER, TIMEOUT: 20_000 });
    const [patient, hurried] = await Promise.all([slow('world'), slow('hurried')]);
    assert.deepEqual([patient.status, hurried.status], [200, 504]);

    const write = 'insert into written values (7)';
    assert.equal((await gateway.db({ SQL: write, SERVER: 'world' })).status, 200);
    const refused = await gateway.post('/v1/query', { sql: write, section: 'limited' });
    assert.deepEqual([refused.status, refused.json<{ code: string }>().code], [403, 'READ_ONLY']);
  });
});

test('a key is its section’s: the same one in another section is another request, in the same table too', async () => {
  await withSharedGateway(async (gateway) => {
    const ask = async (section: string, id: number) => {
      const headers = { 'Idempotency-Key': 'one-name' };
      const sql = `insert into written values (${id})`;
      const reply = await gateway.post('/v1/query', { sql, section }, { headers });
      return [reply.status, reply.headers['idempotency-replayed'] ?? 'first'];
    };
    const [first, again] = [
      [200, 'first'],
      [200, 'true'],
    ];
    for (const [section, id] of [
      ['world', 101],
      ['shop', 102],
      ['mirror', 103],
    ] as const) {
      assert.deepEqual([await ask(section, id), await ask(section, id)], [first, again], section);
    }
    const count = async (name: Name, table: string) =>
      Number((await databases[name].query(`select count(*) as n from ${table}`))[0]?.n);
    assert.deepEqual(
      [await count('world', 'request_keys'), await count('shop', 'shop_keys')],
      [2, 1],
    );
    const headers = { 'Idempotency-Key': 'x' };
    const bare = await gateway.post('/v1/query', { sql: 'do 1', section: 'bare' }, { headers });
    assert.deepEqual([bare.status, bare.json<{ code: string }>().code], [400, 'IDEMPOTENCY_OFF']);
  });
});

test('identical reads share one execution inside of a section, and never with another one', async () => {
  await withSharedGateway(async (gateway) => {
    for (const name of names) {
      const SQL = "select 'busy'";
      const SERVER = `coalescing_${name}`;
      await holdAnswer(proxies[name], SQL, () => gateway.dbPost({ SQL, SERVER }));
    }
    const asked = [...names, ...names, ...names];
    const before = names.map((name) => timesSent(proxies[name], valueSql));
    const replies = asked.map((name) =>
      gateway.dbPost({ SQL: valueSql, SERVER: `coalescing_${name}` }),
    );
    await eventually('all of them wait', async () => {
      return (await readMetric(gateway, 'dbhttpd_queue_length')) === asked.length;
    });
    for (const name of names) proxies[name].release();
    assert.deepEqual((await Promise.all(replies)).map(cellOf), asked);
    const after = names.map((name) => timesSent(proxies[name], valueSql));
    assert.deepEqual(
      after.map((count, at) => count - (before[at] ?? 0)),
      [1, 1],
    );
    for (const name of names) {
      const section = `coalescing_${name}`;
      const saved = await readMetric(gateway, 'dbhttpd_coalesced_requests_total', { section });
      assert.equal(saved, 2);
    }
  });
});

test('each section has its series; what the daemon counts once is under the name of the first one', async () => {
  await withSharedGateway(async (gateway) => {
    const sections = names.map((name) => `counted_${name}`);
    const [first, second] = sections;
    const before = await scrape(gateway);
    for (const SERVER of [first, second, second]) {
      await gateway.db({ SQL: 'select id from t', SERVER });
    }
    await gateway.db({ SQL: 'select * from nowhere', SERVER: second });
    // A busy machine may answer the question behind it late.
    await eventually('both are ready', async () => {
      const ready = sections.map((section) => readMetric(gateway, 'dbhttpd_ready', { section }));
      return (await Promise.all(ready)).every((value) => value === 1);
    });
    const samples = await scrape(gateway);
    const of = (name: string, labels: Readonly<Record<string, string>>) =>
      sections.map((section) => sumOf(samples, name, { section, ...labels }));
    assert.deepEqual(of('dbhttpd_rows_total', {}), [3, 6]);
    assert.deepEqual(of('dbhttpd_outcomes_total', { outcome: 'ok' }), [1, 2]);
    assert.deepEqual(of('dbhttpd_outcomes_total', { outcome: 'error' }), [0, 1]);
    assert.deepEqual(of('dbhttpd_request_duration_seconds_count', {}), [1, 3]);
    assert.deepEqual(of('dbhttpd_ready', {}), [1, 1]);
    for (const name of names) {
      const backend = `127.0.0.1:${proxies[name].port}`;
      const most = { section: `counted_${name}`, backend };
      assert.equal(sumOf(samples, 'dbhttpd_pool_connections_max', most), 2);
      assert.ok(sumOf(samples, 'dbhttpd_connects_total', { ...most, result: 'ok' }) > 0);
    }
    const asked = { section: 'world', endpoint: 'db' };
    const [earlier, now] = [before, samples].map((all) =>
      sumOf(all, 'dbhttpd_requests_total', asked),
    );
    assert.equal(Number(now) - Number(earlier), 4);
    assert.deepEqual(of('dbhttpd_requests_total', { endpoint: 'db' }), [0, 0]);
    assert.equal(sumOf(samples, 'dbhttpd_worker_up', { section: 'world' }), 1);
    assert.deepEqual(of('dbhttpd_worker_up', {}), [0, 0]);
    // A series with the label `section` exists for each section, before its first event too.
    const own = [...samples.keys()].filter((key) => key.includes(`section="${second}"`));
    assert.notEqual(own.length, 0);
    const backends = names.map((name) => `127.0.0.1:${proxies[name].port}`);
    for (const key of own) {
      const other = key
        .replace(`section="${second}"`, 'section="world"')
        .replace(backends[1] ?? '', backends[0] ?? '');
      assert.ok(samples.has(other), key);
    }
  });
});

test('one database that is down does not affect the other, and /readyz reports both', async () => {
  await withSharedGateway(async (gateway) => {
    const { shop } = proxies;
    const readyz = async () => {
      const { status, text } = await gateway.get('/readyz');
      const { world, shop: reported } = JSON.parse(text).sections;
      return [status, { world, shop: reported }];
    };
    const both = { world: { ready: true }, shop: { ready: true } };
    await eventually('both are there', async () => {
      assert.deepEqual(await readyz(), [200, both]);
      return true;
    });
    await shop.listen(false);
    shop.cutAll();
    try {
      await eventually('one is reported as gone', async () => {
        assert.deepEqual(await readyz(), [200, { ...both, shop: { ready: false } }]);
        return true;
      });
      const lost = await gateway.dbPost({ SQL: valueSql, SERVER: 'shop', TIMEOUT: 2_000 });
      assert.equal(lost.status, 503);
      assert.equal(cellOf(await gateway.dbPost({ SQL: valueSql })), 'world');
      assert.equal(await readMetric(gateway, 'dbhttpd_ready', { section: 'shop' }), 0);
      assert.equal(await readMetric(gateway, 'dbhttpd_ready', { section: 'world' }), 1);
    } finally {
      await shop.listen(true);
    }
    await eventually('it is back', async () => {
      const reply = await gateway.dbPost({ SQL: valueSql, SERVER: 'shop' });
      return reply.status === 200 && cellOf(reply) === 'shop';
    });
  });
});

test('SIGHUP reloads the password of a further section', async () => {
  await withSharedGateway(async (gateway) => {
    const ask = () => gateway.dbPost({ SQL: valueSql, SERVER: 'renewed' });
    await eventually('it serves', async () => (await ask()).status === 200);
    await databases.shop.query(`alter user '${renewedUser}'@'%' identified by 'two'`);
    writeFileSync(passwordFile, 'two\n');
    process.kill(gateway.pid, 'SIGHUP');
    await eventually('it is read again', () => gateway.log().includes('credentials read again'));
    proxies.shop.cutAll();
    await eventually('it serves by the new one', async () => (await ask()).status === 200);
    assert.equal(cellOf(await gateway.dbPost({ SQL: valueSql })), 'world');
  });
});

test('a stop lets requests in flight on every section finish', async () => {
  const gates = [await closeGate(databases.world), await closeGate(databases.shop)];
  await withGateway(async (gateway) => {
    try {
      const replies = names.map((SERVER, at) =>
        gateway.dbPost({ SQL: `select ${gates[at]?.zero} as n, '${SERVER}' as v`, SERVER }),
      );
      await eventually('both run', async () => {
        const busy = names.map((section) =>
          readMetric(gateway, 'dbhttpd_pool_connections', { section, state: 'busy' }),
        );
        return (await Promise.all(busy)).every((count) => count === 1);
      });
      process.kill(gateway.pid, 'SIGTERM');
      await eventually('it drains', () => !existsSync(gateway.pidfile));
      for (const gate of gates) await gate.open();
      const reported = (await Promise.all(replies)).map((reply) => [
        reply.status,
        reply.json<{ RESULT: { ROWS: unknown[][] } }>().RESULT.ROWS[0]?.[1],
      ]);
      assert.deepEqual(reported, [
        [200, 'world'],
        [200, 'shop'],
      ]);
    } finally {
      for (const gate of gates) await gate.open().catch(() => undefined);
    }
  });
});

test('/openapi.json describes the replies of a further section, and that requests may name it', async () => {
  await withSharedGateway(async (gateway) => {
    const document = (await gateway.get('/openapi.json')).json<{
      components: { schemas: Record<string, { properties?: { section?: object } }> };
    }>();
    const validator = new Ajv2020({
      strict: true,
      allowUnionTypes: true,
      keywords: ['components'],
    });
    validator.addSchema({ $id: 'document', components: document.components });
    const reply = await gateway.post('/v1/query', { sql: valueSql, section: 'shop' });
    assert.ok(
      validator.validate({ $ref: 'document#/components/schemas/Rows' }, reply.json()),
      validator.errorsText(),
    );
    assert.match(JSON.stringify(document), /The section that is meant; without this the first\./);
    assert.ok(!JSON.stringify(document).includes('the section that is served here'));
  });
});

test('docs/guides/several-databases.md: every request gets the answer of the page', async () => {
  await databases.world.query(`
    create table place (name varchar(60) not null primary key);
    insert into place values ('Baku'), ('Longyearbyen')`);
  await databases.shop.query(`
    create table article (name varchar(60) not null);
    insert into article values ('umbrella')`);
  const page = readFileSync('docs/guides/several-databases.md', 'utf8');
  const asked = [...page.matchAll(/^```sh\n(.*)\n```\n```json\n(.*)\n```$/gm)];
  assert.equal(asked.length, 4);
  await withGateway(
    async (gateway) => {
      await eventually('it is ready', async () => {
        const { text } = await gateway.get('/readyz');
        return !text.includes('false');
      });
      for (const [, command = '', answer = ''] of asked) {
        const program = command.replaceAll('http://127.0.0.1:9090', gateway.url);
        assert.deepEqual(JSON.parse(await runBash(program)), JSON.parse(answer), command);
      }
    },
    { read_only: 'on', pool: 4 },
  );
});
