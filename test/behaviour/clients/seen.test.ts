// The clients as operators see them: metrics, logs, and the lists of requests, statements and clients.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import type { StatementList } from '../../../src/shared/observe/statement-sums.ts';
import type { RequestList, Stats } from '../../../src/shared/observe/stats.ts';
import type { Reply } from '../../support/ask.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { closeGate, createGate, type Gate } from '../../support/database/gate.ts';
import { postAsDriver } from '../../support/driver.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { logShows } from '../../support/log-shows.ts';
import { getReport } from '../../support/reports.ts';
import { scrape } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createJwtKeys, jwtNames } from './support/jwt-keys.ts';

const allow = 'sql, batch, transaction, drivers';
const clients = {
  web: { allow },
  report: { allow, read_only: 'on' },
  people: { allow, jwt: 'role: person' },
  leaver: { allow },
  watcher: { allow: 'observe' },
  anonymous: { allow: 'metrics' },
};
const file = createClientsFile(clients);
const keys = createJwtKeys();
const settings = {
  workers: 2,
  pool: 4,
  drivers: 'planetscale',
  clients: file.path,
  jwt_keys: keys.path,
  ...jwtNames,
};
const { gateway, database } = useGateway(
  { ...settings, access_log: 'json', slow_query: '1ms', log_level: 'debug' },
  { prepare: createGate },
);
let ann: string;
let gate: Gate | null = null;
before(async () => {
  ann = await keys.sign('ann smith', { role: 'person' });
});
afterEach(async () => {
  await gate?.open();
  gate = null;
});
after(() => {
  file.remove();
  keys.remove();
});

const as = (token: string, id = 'any') => ({
  headers: { ...bearing(token), 'X-Request-ID': id },
});
const query = (token: string, sql: string, id?: string, at: Gateway = gateway): Promise<Reply> =>
  at.post('/v1/query', { sql }, as(token, id));
const watch = async <Report>(path: string): Promise<Report> =>
  (await getReport(gateway, path, as(tokenOf('watcher')))).json<Report>();

/** The values of all series of clients, summed over the workers, by name and labels. */
async function readSeries(at: Gateway = gateway): Promise<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>();
  for (const [sample, value] of await scrape(at)) {
    const [, name, labels = ''] = /^(dbhttpd_client_\w+)\{(.*)\}$/.exec(sample) ?? [];
    if (name === undefined || !labels.includes('client="')) continue;
    const key = `${name} ${labels.replace(/(section|slot)="[^"]*",?/g, '')}`.replace(/,$/, '');
    sums.set(key, (sums.get(key) ?? 0) + value);
  }
  return sums;
}

const clientsOf = (series: ReadonlyMap<string, number>) =>
  [...new Set([...series.keys()].map((key) => /client="([^"]*)"/.exec(key)?.[1]))].toSorted();

test('every series of every client stands at 0 before its first event', async () => {
  const series = await readSeries();
  assert.deepEqual(clientsOf(series), Object.keys(clients).toSorted());
  assert.deepEqual(
    [...series].filter(([, value]) => value !== 0),
    [],
  );
  const ofWeb = [...series.keys()].filter((key) => key.includes('client="web"'));
  assert.equal(ofWeb.length, 7 + 5 + 4, ofWeb.join('\n'));
  assert.equal(series.size, ofWeb.length * Object.keys(clients).length);
});

test('without a clients file all requests are those of the client default', async () => {
  const plain = await startGateway({ database, settings: { workers: 1 } });
  try {
    assert.deepEqual(clientsOf(await readSeries(plain)), ['default']);
    await plain.db({ SQL: 'select 1' });
    const series = await readSeries(plain);
    assert.equal(series.get('dbhttpd_client_requests_total client="default",outcome="ok"'), 1);
    const { clients } = (await getReport(plain, '/v1/stats')).json<Stats>();
    assert.deepEqual(
      clients.clients.map(({ client, requests }) => [client, requests]),
      [['default', 1]],
    );
  } finally {
    await plain.stop();
  }
});

test('counts requests by outcome, refusals by code, bytes and held time for the client that caused them', async () => {
  const before = await readSeries();
  const web = tokenOf('web');
  const replies = [await query(web, "select 'abc'"), await query(web, 'select sleep(0.01)')];
  await query(web, 'select * from nothing');
  await gateway.get('/v1/stats', as(web));
  await query(web, 'kill 1');
  await query(tokenOf('report'), 'delete from gate');
  await query('of-none', 'select 1');
  const ofWeb = 'client="web"';
  let after = before;
  const more = (metric: string, labels: string) => {
    const key = `dbhttpd_client_${metric} ${labels}`;
    return (after.get(key) ?? Number.NaN) - (before.get(key) ?? Number.NaN);
  };
  // A request is counted when its reply has left, which its client may see first.
  await eventually('all are counted', async () => {
    after = await readSeries();
    const counted = [
      more('requests_total', `${ofWeb},outcome="ok"`),
      more('requests_total', `${ofWeb},outcome="error"`),
      more('refused_total', `${ofWeb},code="FORBIDDEN"`),
      more('refused_total', 'client="report",code="READ_ONLY"'),
    ];
    return counted.join() === '2,1,2,1';
  });
  assert.ok(more('held_seconds_total', ofWeb) >= 0.01);
  const bytes = replies.reduce((sum, { body }) => sum + body.length, 0);
  assert.ok(more('reply_bytes_total', ofWeb) >= bytes);
  const untouched = [...after].filter(
    ([key, value]) => !/client="(web|report)"/.test(key) && value !== before.get(key),
  );
  assert.deepEqual(untouched, []);
});

type Line = Readonly<Record<string, unknown>>;

/** The line of the access log for the request with this id. */
const lineOf = (id: string): Promise<Line> =>
  eventually(`the line of ${id}`, () =>
    readFileSync(join(gateway.directory, 'log.access.log'), 'utf8')
      .split('\n')
      .filter((line) => line.includes(`"request_id":"${id}"`))
      .map((line) => JSON.parse(line) as Line)
      .at(0),
  );

test('the access log has the client and its user, and no client for a request whose credentials were rejected', async () => {
  await query(tokenOf('web'), 'select 1', 'of-web');
  await query(ann, 'select 1', 'of-ann');
  await query('wrong', 'select 1', 'of-none');
  await gateway.get('/metrics', { headers: { 'X-Request-ID': 'of-anonymous' } });
  await gateway.get('/livez', { ...as(tokenOf('web'), 'of-livez') });
  for (const [id, client, user] of [
    ['of-web', 'web', null],
    ['of-ann', 'people', 'ann smith'],
    ['of-none', null, null],
    ['of-anonymous', 'anonymous', null],
    ['of-livez', null, null],
  ]) {
    const line = await lineOf(id ?? '');
    assert.deepEqual([line.client, line.user, line.address], [client, user, '127.0.0.1'], `${id}`);
  }
});

test('the user in the combined format is the client, with its user behind a slash', async () => {
  const combined = await startGateway({
    database,
    settings: { ...settings, access_log: 'combined' },
  });
  try {
    await query(tokenOf('web'), 'select 1', 'x', combined);
    await query(ann, 'select 1', 'x', combined);
    await postAsDriver(combined, { query: 'select 1' }, { password: tokenOf('web') });
    await query('wrong', 'select 1', 'x', combined);
    const users = await eventually('four lines', () => {
      const text = readFileSync(join(combined.directory, 'log.access.log'), 'utf8');
      const found = text.split('\n').flatMap((line) => / - (\S+) \[.*"POST /.exec(line)?.[1] ?? []);
      return found.length === 4 && found;
    });
    assert.deepEqual(users.toSorted(), ['-', 'people/ann\\x20smith', 'web', 'web/app']);
  } finally {
    await combined.stop();
  }
});

test('the log names the client and its user in slow statements and failures', async () => {
  await query(ann, 'select sleep(0.05)', 'slow-ann');
  await logShows(gateway, /slow statement request_id=slow-ann client=people user="ann smith" /);
  await gateway.get('/v1/stats', as(tokenOf('web'), 'no-watcher'));
  await logShows(gateway, /a request failed request=no-watcher client=web .*code=FORBIDDEN/);
});

test('the lists of requests and clients show whose requests run', async () => {
  gate = await closeGate(database);
  const runs = [
    query(ann, `select ${gate.zero}`, 'ann-runs'),
    query(tokenOf('web'), `select ${gate.zero}`, 'web-runs'),
  ];
  const { requests } = await eventually('both run', async () => {
    const list = await watch<RequestList>('/v1/requests');
    return list.requests.filter(({ phase }) => phase === 'running').length === 2 && list;
  });
  const shown = requests.map(({ request_id, client, user, address }) => [
    request_id,
    client,
    user,
    address?.replace('::ffff:', ''),
  ]);
  assert.deepEqual(shown.toSorted(), [
    ['ann-runs', 'people', 'ann smith', '127.0.0.1'],
    ['web-runs', 'web', null, '127.0.0.1'],
  ]);
  const { clients: list } = await watch<Stats>('/v1/stats');
  const find = (name: string) => list.clients.find(({ client }) => client === name);
  assert.deepEqual([find('people')?.in_flight, find('web')?.in_flight], [1, 1]);
  assert.equal(find('report')?.in_flight, 0);
  const shares = list.clients.map(({ share }) => share);
  assert.deepEqual(
    shares,
    shares.toSorted((one, other) => other - one),
  );
  assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 1) < 0.01);
  assert.equal(list.omitted, 0);
  await gate.open();
  for (const reply of await Promise.all(runs)) assert.equal(reply.status, 200);
});

test('a statement is listed once for each client that has run it', async () => {
  for (const name of ['web', 'web', 'report']) {
    assert.equal((await query(tokenOf(name), "select 'of several'")).status, 200);
  }
  const { statements } = await watch<StatementList>('/v1/statements');
  const counts = statements
    .filter(({ digest, client }) => digest === 'select ?' && client !== 'people')
    .map(({ client, count }) => [client, count]);
  assert.deepEqual(counts.map(([client]) => client).toSorted(), ['report', 'web']);
  const last = statements.at(-1);
  assert.deepEqual([last?.digest, last?.client], ['other', undefined]);
});

test('a client that SIGHUP removed is seen as long as its requests run, and begins at 0 if it comes back', async () => {
  gate = await closeGate(database);
  const runs = query(tokenOf('leaver'), `select ${gate.zero}`);
  const inFlight = 'dbhttpd_client_requests_in_flight client="leaver"';
  const done = 'dbhttpd_client_requests_total client="leaver",outcome="ok"';
  await eventually('it runs', async () => (await readSeries()).get(inFlight) === 1);
  const { leaver: _, ...others } = clients;
  file.write(others);
  process.kill(gateway.pid, 'SIGHUP');
  await eventually('it is rejected', async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => gateway.get('/openapi.json', as(tokenOf('leaver')))),
    );
    return replies.every(({ status }) => status === 401);
  });
  assert.equal((await readSeries()).get(inFlight), 1);
  await gate.open();
  assert.equal((await runs).status, 200);
  await eventually('its series end', async () => !clientsOf(await readSeries()).includes('leaver'));
  const { clients: list } = await watch<Stats>('/v1/stats');
  assert.ok(!list.clients.some(({ client }) => client === 'leaver'));
  file.write(clients);
  process.kill(gateway.pid, 'SIGHUP');
  await eventually('it is there again', async () => (await readSeries()).get(done) === 0);
});
