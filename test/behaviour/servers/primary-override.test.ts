// `--primary`: an operator names the primary once, and the running instance, or else the next one, uses it at once.
// The other candidates are ports at which nothing listens.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import {
  formatPrimaryMemory,
  overridePrimary,
  type PrimaryMemory,
  parsePrimaryMemory,
} from '../../../src/shared/servers/primary-memory.ts';
import { createAsk } from '../../support/ask.ts';
import {
  createDaemon,
  type Daemon,
  type Finished,
  runCommand,
  type Settings,
} from '../../support/daemon.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { formatSection } from '../../support/ini-text.ts';
import { logShows } from '../../support/log-shows.ts';
import { readMetric } from '../../support/scrape.ts';

let database: Database;
let server: string;
before(async () => {
  database = await startDatabase();
  server = `${database.host}:${database.port}`;
});
after(() => database.stop());
const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

const closed = '127.0.0.1:1';

function account(): Record<string, string> {
  const { name, user, password } = database;
  return { database: name, user, ...(password === '' ? {} : { password }) };
}

/** The section `world`, and others behind it in the same file. */
function create(settings: Settings = {}, others: Readonly<Record<string, string>> = {}): Daemon {
  const daemon = createDaemon({ ...account(), host: `${server}, ${closed}`, ...settings });
  daemons.push(daemon);
  for (const [name, host] of Object.entries(others)) {
    appendFileSync(daemon.configPath, formatSection(name, { ...account(), host }));
  }
  return daemon;
}

function setPrimary(daemon: Daemon, address: string, ...beside: readonly string[]) {
  return daemon.run(['--primary', address, ...beside]);
}

const fileOf = (daemon: Daemon, section = 'world') => join(daemon.stateDir, `${section}.primary`);

function remembered(daemon: Daemon, section?: string): PrimaryMemory {
  const memory = parsePrimaryMemory(readFileSync(fileOf(daemon, section), 'utf8'));
  assert.ok(memory !== null);
  return memory;
}

/** The memory of a set in which the other candidate took writes. */
function rememberOther(daemon: Daemon): PrimaryMemory {
  const memory = overridePrimary(null, {
    address: closed,
    identity: `${closed}/7`,
    number: '7',
    startedAt: 1_700_000_000,
    position: null,
  });
  mkdirSync(daemon.stateDir, { mode: 0o700 });
  writeFileSync(fileOf(daemon), formatPrimaryMemory(memory), { mode: 0o600 });
  return memory;
}

function assertDone({ status, stdout, stderr }: Finished, ...lines: readonly RegExp[]): void {
  assert.deepEqual([status, stderr], [0, '']);
  for (const line of lines) assert.match(stdout, line);
}

test('while no instance runs the file is changed, for its user alone, and the next start remembers', async () => {
  const daemon = create();
  const finished = await setPrimary(daemon, server);
  assertDone(
    finished,
    new RegExp(
      `^\\[world\\] primary: ${server} \\((?:MariaDB|MySQL) \\d.*, server_id \\d+\\)$`,
      'm',
    ),
    /^\[world\] before: none was remembered$/m,
  );
  const path = fileOf(daemon);
  const where = `[world] no instance runs: the next start reads it from ${path}\n`;
  assert.ok(finished.stdout.endsWith(where), finished.stdout);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(daemon.stateDir).mode & 0o777, 0o700);
  const { primary, term, replicas, former } = remembered(daemon);
  assert.deepEqual([primary.address, term, replicas, former], [server, 1, [], []]);
  assert.equal(primary.taken, primary.position);

  assert.equal((await daemon.start()).status, 0);
  const line = new RegExp(
    `remembers the last primary section=world primary=${server} term=1$`,
    'm',
  );
  await logShows(daemon, line);
});

test('it overrides the memory, even under the name of the host alone', async () => {
  const daemon = create({ host: `localhost:${database.port}, ${closed}` });
  const earlier = rememberOther(daemon);
  assertDone(await setPrimary(daemon, 'LOCALHOST'), new RegExp(`before: ${closed}$`, 'm'));
  const memory = remembered(daemon);
  assert.equal(memory.primary.address, `localhost:${database.port}`);
  assert.deepEqual(memory.former, [earlier.primary.identity]);
  assert.equal(memory.term, earlier.term + 1);
});

test('--check reports what a start would decide about the servers with this memory', async () => {
  const daemon = create();
  const roleOf = async () => /^role: .*$/m.exec((await daemon.run(['--check'])).stdout)?.[0];
  assert.match(`${await roleOf()}`, /^role: primary /);
  rememberOther(daemon);
  assert.match(`${await roleOf()}`, /^role: unusable /);
  assertDone(await setPrimary(daemon, server));
  assert.match(`${await roleOf()}`, /^role: primary /);
});

test('a running instance has it at once, and on disk', async () => {
  const daemon = create();
  rememberOther(daemon);
  assert.equal((await daemon.start()).status, 0);
  const pid = daemon.pid();
  const finished = await setPrimary(daemon, server);
  assertDone(
    finished,
    new RegExp(`^\\[world\\] before: ${closed}$`, 'm'),
    /^\[world\] the running instance uses it from now on$/m,
  );
  assert.equal(remembered(daemon).primary.address, server);
  const line = `an operator has set the primary section=world primary=${server} was=${closed}`;
  await eventually('the log says so', () => daemon.readLog().includes(line));
  assert.equal(daemon.pid(), pid);
  assert.equal((await daemon.start()).status, 75);
});

test('an instance that cannot write the file still uses it: it warns, and serves', async () => {
  const daemon = create();
  const target = { ...account(), host: `${server}, ${closed}` };
  daemon.configure({ ...target, state_dir: join(daemon.configPath, 'state') });
  assert.equal((await daemon.start()).status, 0);
  assertDone(
    await setPrimary(daemon, server),
    /^\[world\] warning: the memory cannot be saved, and is lost when the running instance ends$/m,
  );
  const warning = /the memory of the last primary cannot be saved: .*reason=.*ENOTDIR/;
  await logShows(daemon, warning);
  const ask = createAsk(`http://${daemon.address()}`);
  assert.equal(await readMetric(ask, 'dbhttpd_primary_memories_unsaved', { section: 'world' }), 1);
  assert.equal((await ask.db({ SQL: 'select 1' })).status, 200);
});

test('without an instance a file that cannot be written is no success', async () => {
  const daemon = create();
  const below = join(daemon.configPath, 'state');
  daemon.configure({ ...account(), host: `${server}, ${closed}`, state_dir: below });
  const { status, stdout, stderr } = await setPrimary(daemon, server);
  assert.deepEqual([status, stdout], [73, '']);
  assert.match(stderr, /^dbhttpd: cannot write .*world\.primary: ENOTDIR/);
});

test('an address that is no candidate exits 78, and so does the only server of a section', async () => {
  const daemon = create();
  const { status, stdout, stderr } = await setPrimary(daemon, '127.0.0.1:2');
  assert.deepEqual([status, stdout], [78, '']);
  const problem = `no section has several servers with 127.0.0.1:2 among them: [world] ${server}, ${closed}`;
  assert.equal(stderr, `dbhttpd: ${problem}\n`);
  // Two candidates have this host.
  assert.equal((await setPrimary(daemon, '127.0.0.1')).status, 78);
  assert.equal((await setPrimary(create({ host: server }), server)).status, 78);
});

test('a server that cannot be reached exits 69, and nothing is set', async () => {
  const daemon = create();
  const earlier = rememberOther(daemon);
  const { status, stdout, stderr } = await setPrimary(daemon, closed);
  assert.deepEqual([status, stdout], [69, '']);
  assert.match(
    stderr,
    /^dbhttpd: nothing is set, because 127\.0\.0\.1:1 could not be asked \(ECONNREFUSED\)$/m,
  );
  assert.deepEqual(remembered(daemon), earlier);
});

test('a misuse exits 64 with the usage, a missing file 66, a faulty section 78', async () => {
  const daemon = create();
  const target = ['-c', daemon.configPath, '-s', 'world'];
  for (const misuse of [
    ['--primary', ...target],
    ['--primary', 'a', '--check', ...target],
  ]) {
    const { status, stdout, stderr } = await runCommand(misuse);
    assert.deepEqual([status, stdout], [64, '']);
    assert.match(stderr, /--primary.*\nusage: /);
  }
  const missing = ['--primary', server, '-c', join(daemon.directory, 'none.ini'), '-s', 'world'];
  assert.equal((await runCommand(missing)).status, 66);
  assert.equal((await setPrimary(create({ pool: 'x' }), server)).status, 78);
});

test('every section that has the server changes, and no other', async () => {
  const daemon = create({}, { shop: `${closed}, ${server}`, moon: `${closed}, 127.0.0.1:2` });
  const finished = await setPrimary(daemon, server, '-m', 'shop:moon');
  assertDone(finished, /^\[world\] primary: /m, /^\[shop\] primary: /m);
  assert.doesNotMatch(finished.stdout, /moon/);
  for (const section of ['world', 'shop']) {
    assert.equal(remembered(daemon, section).primary.address, server);
  }
  assert.throws(() => statSync(fileOf(daemon, 'moon')), /ENOENT/);
});

test('an instance that was started before the server was listed refuses, and its memory is unchanged', async () => {
  const daemon = create({ host: `127.0.0.1:2, ${closed}` });
  const earlier = rememberOther(daemon);
  assert.equal((await daemon.start()).status, 0);
  daemon.configure({ ...account(), host: `${server}, ${closed}` });
  const { status, stdout, stderr } = await setPrimary(daemon, server);
  assert.deepEqual([status, stdout], [78, '']);
  const problem = `[world] had no server ${server} when it was started`;
  assert.equal(stderr, `dbhttpd: the running instance refuses: ${problem}\n`);
  assert.deepEqual(remembered(daemon), earlier);
});

test('a damaged file is no obstacle: a start logs it, and an override replaces it', async () => {
  const daemon = create();
  rememberOther(daemon);
  writeFileSync(fileOf(daemon), '{"version":');
  chmodSync(fileOf(daemon), 0o600);
  assert.equal((await daemon.start()).status, 0);
  const line = /the memory of the last primary cannot be used: it is ignored .*content is damaged/;
  await logShows(daemon, line);
  assertDone(await setPrimary(daemon, server));
  assert.equal(remembered(daemon).primary.address, server);
});
