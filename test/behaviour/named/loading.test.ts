// The files of named statements: every fault ends a start, and a reload replaces all statements and clients together, or nothing.
import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { after, test } from 'node:test';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { logShows } from '../../support/log-shows.ts';
import { gone } from '../../support/processes.ts';
import { getReport } from '../../support/reports.ts';
import { readMetric, scrape } from '../../support/scrape.ts';
import { useDatabase } from '../../support/use-gateway.ts';
import { createNamedDirectory, type NamedDirectory } from './support/named-directory.ts';

const database = useDatabase();
const statement = (name: string, client = '*', sql = `select '${name}' as name`) =>
  `-- name: ${name} :one\n-- for: ${client}\n${sql};\n`;
const started: { readonly stop: () => Promise<void> }[] = [];
const made: { readonly remove: () => void }[] = [];
after(async () => {
  for (const one of started) await one.stop();
  for (const one of made) one.remove();
});

function createDirectory(text: string): NamedDirectory {
  const directory = createNamedDirectory(text);
  made.push(directory);
  return directory;
}

async function start(settings: Parameters<typeof startGateway>[0]['settings']): Promise<Gateway> {
  const gateway = await startGateway({ database, settings: { workers: 2, ...settings } });
  started.push(gateway);
  return gateway;
}

const hangUp = (gateway: Gateway) => process.kill(gateway.pid, 'SIGHUP');
const namesOf = async (gateway: Gateway, headers = {}) => {
  const reply = await gateway.get('/v1/named', { headers });
  assert.equal(reply.status, 200, reply.text);
  return reply.json<{ statements: { name: string }[] }>().statements.map(({ name }) => name);
};
/** Each request may reach another worker: both must have the list. */
const listIs = (gateway: Gateway, wanted: readonly string[], headers = {}) =>
  eventually(`the list is ${wanted}`, async () => {
    const lists = await Promise.all(Array.from({ length: 8 }, () => namesOf(gateway, headers)));
    return lists.every((list) => String(list) === String(wanted));
  });
const faultsOf = async (gateway: Gateway, headers = {}) => {
  const stats = await getReport(gateway, '/v1/stats', { headers });
  return stats.json<{ file_faults: { key: string; at: string; problem: string }[] }>().file_faults;
};

test('a start with faulty files ends with 78, and reports every fault with file and line', async () => {
  const directory = createDirectory(`${statement('good')}-- name: bad :oen\nselect 1;\n`);
  directory.write('-- name: none :one\n-- for: *\nselect :missing as a;\n', 'other.sql');
  for (const file of ['twice.sql', 'twice_more.sql']) directory.write(statement('same'), file);
  await assert.rejects(start({ named: directory.path }), (error: Error) => {
    assert.match(error.message, /exit 78/);
    assert.match(error.message, /all\.sql: \(line 4\)/);
    assert.match(error.message, /other\.sql: \(line 3\).*missing/);
    assert.match(error.message, /twice_more\.sql: \(line 1\): `same` is already in/);
    return true;
  });
  for (const file of ['other.sql', 'twice.sql', 'twice_more.sql']) directory.erase(file);
  directory.write(statement('good', 'stranger'));
  await assert.rejects(start({ named: directory.path }), /there is no client `stranger`/);
});

test('SIGHUP replaces all statements, or none, and shows each fault until it is gone', async () => {
  const directory = createDirectory(statement('first'));
  const gateway = await start({ named: directory.path });
  directory.write(statement('second'));
  directory.write(statement('third'), 'more.sql');
  hangUp(gateway);
  await listIs(gateway, ['second', 'third']);
  const counts = [...(await scrape(gateway))];
  for (const slot of [0, 1]) {
    const series = `slot="${slot}",name="third",result="ok"}`;
    const [, count] = counts.find(([sample]) => sample.endsWith(series)) ?? [];
    assert.equal(count, 0, 'a statement has its series before its first call');
  }
  const removed = counts.filter(([sample]) => sample.includes('name="first"'));
  assert.deepEqual(removed, [], 'a removed statement has none');
  directory.write(statement('fourth'));
  directory.write('-- name: third :one\nselect 1;\n', 'more.sql');
  hangUp(gateway);
  await logShows(gateway, /a file cannot be used.*key=named.*more\.sql: \(line 1\)/);
  assert.deepEqual(await namesOf(gateway), ['second', 'third']);
  assert.equal((await gateway.get('/v1/named/second')).text, '{"name":"second"}');
  const [fault] = await faultsOf(gateway);
  assert.equal(fault?.key, 'named');
  assert.match(fault.at, /more\.sql: \(line 1\)$/);
  assert.equal(await readMetric(gateway, 'dbhttpd_file_faults', { key: 'named' }), 1);
  directory.erase('more.sql');
  hangUp(gateway);
  await listIs(gateway, ['fourth']);
  assert.deepEqual(await faultsOf(gateway), []);
  chmodSync(directory.path, 0o707);
  hangUp(gateway);
  await logShows(gateway, /is a directory that others may write to/);
  assert.deepEqual(await namesOf(gateway), ['fourth']);
  chmodSync(directory.path, 0o700);
});

test('statements and clients are replaced together: a client that statements need cannot go alone', async () => {
  const directory = createDirectory(statement('ours', 'web'));
  const admin = { allow: 'all' };
  const file = createClientsFile({ admin, web: { allow: 'named' } });
  made.push(file);
  const gateway = await start({ named: directory.path, clients: file.path });
  const [asAdmin, asWeb] = [bearing(tokenOf('admin')), bearing(tokenOf('web'))];
  assert.deepEqual(await namesOf(gateway, asAdmin), []);
  // The new client is not accepted, because a statement is for one that would be gone.
  file.write({ admin, other: { allow: 'named' } });
  hangUp(gateway);
  await logShows(gateway, /there is no client `web`/);
  assert.equal(
    (await gateway.get('/v1/named', { headers: bearing(tokenOf('other')) })).status,
    401,
  );
  assert.deepEqual(await namesOf(gateway, asWeb), ['ours']);
  const [fault] = await faultsOf(gateway, asAdmin);
  assert.match(fault?.problem ?? '', /there is no client `web`/);
  // Nor are statements, if the clients have a fault.
  directory.write(statement('theirs', 'other'));
  file.write({ admin, other: { allow: 'nonsense' } });
  hangUp(gateway);
  await logShows(gateway, /nonsense|`allow`/);
  assert.deepEqual(await namesOf(gateway, asWeb), ['ours']);
  file.write({ admin, other: { allow: 'named' } });
  hangUp(gateway);
  await listIs(gateway, ['theirs'], bearing(tokenOf('other')));
  assert.equal((await gateway.get('/v1/named', { headers: asWeb })).status, 401);
  // And an unknown client is a fault of the statements alone, too.
  directory.write(statement('theirs', 'stranger'));
  hangUp(gateway);
  await logShows(gateway, /there is no client `stranger`/);
  assert.deepEqual(await namesOf(gateway, bearing(tokenOf('other'))), ['theirs']);
});

test('a worker that takes the place of another one has the statements of the last reload', async () => {
  const directory = createDirectory(statement('first'));
  const gateway = await start({ named: directory.path, workers: 1 });
  directory.write(statement('second'));
  hangUp(gateway);
  await listIs(gateway, ['second']);
  const [worker = 0] = gateway.workers();
  process.kill(worker, 'SIGKILL');
  await gone(worker);
  const names = await eventually('another worker answers', () =>
    namesOf(gateway).catch(() => false as const),
  );
  assert.deepEqual(names, ['second']);
});

test('named_watch reads the files when they change, and keeps what a faulty one had', async () => {
  const directory = createDirectory(statement('first'));
  const gateway = await start({ named: directory.path, named_watch: 'on' });
  directory.write(statement('second'));
  await listIs(gateway, ['second']);
  directory.write(statement('third'), 'new.sql');
  await listIs(gateway, ['second', 'third']);
  directory.write('nonsense', 'new.sql');
  await logShows(gateway, /new\.sql: \(line 1\)/);
  assert.deepEqual(await namesOf(gateway), ['second', 'third']);
  directory.erase('new.sql');
  await listIs(gateway, ['second']);
});

test('a thousand statements are loaded, and each can be called', async () => {
  const many = Array.from({ length: 1000 }, (_, at) =>
    statement(
      `s${at}`,
      '*',
      `select concat(:id) as id from dual where ${at} = ${at} and :id > 0`,
    ).replace('select', '-- param id: int\nselect'),
  );
  const directory = createDirectory(many.join('\n'));
  const gateway = await start({ named: directory.path, workers: 1 });
  assert.equal((await namesOf(gateway)).length, 1000);
  assert.equal((await gateway.get('/v1/named/s999?id=7')).text, '{"id":"7"}');
});
