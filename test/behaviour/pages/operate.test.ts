// docs/operate/tasks.md: every command runs as it stands, in its situation, and prints what the page shows below it.
// Waits 10 s: the supervisor ends a worker that hangs after ten pings.

import assert from 'node:assert/strict';
import { appendFileSync, chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, type TestContext, test } from 'node:test';
import { freeLastingPort } from '../../../scripts/support/private-server.ts';
import { type Ask, createAsk, type Reply } from '../../support/ask.ts';
import { createAuthority } from '../../support/certificates.ts';
import { replicationHere, startReplication } from '../../support/clusters/replication.ts';
import { createDaemon, type Daemon, type Settings } from '../../support/daemon.ts';
import { endConnections } from '../../support/database/end-connections.ts';
import { closeGate, createGate, type Gate } from '../../support/database/gate.ts';
import { ownServerOnly } from '../../support/database/mariadb.ts';
import { keySettings } from '../../support/database/server-key.ts';
import { eventually } from '../../support/eventually.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { openCommands, type PageCommands } from '../../support/pages/page-commands.ts';
import { gone, signal } from '../../support/processes.ts';
import { getReport } from '../../support/reports.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const blocks = findBlocks(readFileSync('docs/operate/tasks.md', 'utf8'));

/** A gateway in a situation of the page. */
type Situation = {
  readonly daemon: Daemon;
  readonly ask: Ask;
  readonly configure: (changed: Settings) => void;
  /** Replaces the page's paths and address by those of the test. */
  readonly localise: (text: string) => string;
};

const database = useDatabase({
  serverArguments: [],
  prepare: async (prepared) => {
    await createGate(prepared, 'report');
    await prepared.query(`
      create table place (id int primary key, name varchar(60) not null);
      insert into place values (1, 'Baku'), (2, 'Longyearbyen');
      create user operated@'%' identified by 'operated';
      grant all on ${prepared.name}.* to operated@'%'`);
  },
});

const gates: Gate[] = [];
afterEach(async () => {
  for (const gate of gates.splice(0)) await gate.open();
});

/** Sections of the page that continue with the gateway of the section before. */
function tellInTurn(
  what: string,
  begin: () => Promise<Situation>,
  steps: Readonly<Record<string, (situation: Situation, t: TestContext) => Promise<void>>>,
): void {
  test(what, async (t) => {
    const situation = await begin();
    t.after(situation.daemon.dispose);
    let isWhole = true;
    for (const [title, step] of Object.entries(steps)) {
      await t.test(title, async (own) => {
        if (!isWhole)
          return own.skip('the gateway is not as it was meant to be: see the failure before');
        isWhole = false;
        await step(situation, own);
        isWhole = true;
      });
    }
  });
}

async function prepare(settings: Settings = {}, scheme = 'http'): Promise<Situation> {
  const { name, host, port, flavour } = database;
  const address = `127.0.0.1:${await freeLastingPort()}`;
  const usual = {
    ...{ database: name, host, port: String(port), user: 'operated', password: 'operated' },
    ...{ listen: address, workers: '2', ...keySettings(database) },
    ...settings,
  };
  const daemon = createDaemon(usual);
  return {
    daemon,
    ask: createAsk(`${scheme}://${address}`),
    configure: (changed: Settings) => daemon.configure({ ...usual, ...changed }),
    localise: (text: string) =>
      text
        .replaceAll('server: MariaDB', flavour === 'mysql' ? 'server: MySQL' : 'server: MariaDB')
        .replaceAll('127.0.0.1:9090', address)
        .replaceAll('/run/dbhttpd-world.pid', daemon.pidfile)
        .replaceAll('/var/log/dbhttpd-world.log', daemon.log)
        .replaceAll(/\/(?:etc|root)\/(?=dbhttpd|new)/g, `${daemon.directory}/`),
  };
}

async function startIt({ daemon, ask }: Situation): Promise<void> {
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  await eventually('it is ready', async () => (await ask.get('/readyz')).status === 200);
}

async function start(settings: Settings = {}): Promise<Situation> {
  const situation = await prepare(settings);
  try {
    await startIt(situation);
    return situation;
  } catch (error) {
    await situation.daemon.dispose();
    throw error;
  }
}

const reported = new Set<string>();

/** The commands of a section, one after the other. */
function tell(heading: string, { localise }: Situation): PageCommands {
  reported.add(heading);
  return openCommands(blocks, heading, { localise });
}

const slowSql = 'select count(*), sleep(0) from report';

/** Requests that run, or wait for those that do, until the gate is opened. */
async function hold({ ask }: Situation, count: number) {
  const gate = await closeGate(database, 'report');
  gates.push(gate);
  const patient = { timeoutMs: 120_000 };
  const replies = Array.from({ length: count }, () =>
    ask.post('/v1/query', { sql: slowSql }, patient),
  );
  for (const reply of replies) reply.catch(() => undefined);
  await eventually(`${count} are in flight`, async () => {
    const { requests } = (await ask.get('/v1/requests')).json<{
      requests: { shape: string; phase: string }[];
    }>();
    const isPlaced = requests.filter(({ shape }) => shape.includes('report'));
    return isPlaced.length === count;
  });
  return { gate, replies };
}

test('another server, a backup and a new log file', async (t) => {
  if (!replicationHere(t)) return;
  const set = await startReplication({ replicas: 1 });
  t.after(set.stop);
  const [first] = set.servers;
  assert.ok(first !== undefined);
  const { name, user, password } = set.target;
  const situation = await prepare({
    ...{ database: name, user, password, workers: '1' },
    ...{ host: first.host, port: String(first.port) },
  });
  t.after(situation.daemon.dispose);
  await startIt(situation);
  const { stateDir } = situation.daemon;
  const localise = (text: string) =>
    set.servers
      .reduce(
        (changed, server) =>
          changed.replaceAll(`${server.name}:3306`, `${server.host}:${server.port}`),
        situation.localise(text),
      )
      .replaceAll('/var/lib/dbhttpd', stateDir);
  const own = { ...situation, localise };
  const server = tell('Another server', own);
  await server.run();
  await server.run();
  await server.watch();
  server.end();
  const backup = tell('A backup', own);
  await backup.run();
  backup.end();
  const log = tell('The log is too long', own);
  await log.run();
  await log.watch();
  log.end();
});

let hanging: { readonly situation: Situation; readonly page: ReturnType<typeof tell> };
after(() => hanging?.situation.daemon.dispose());

// The effect takes ten seconds, so the test looks at it after all others.
test('a worker that hangs is reported', async () => {
  const situation = await start();
  hanging = { situation, page: tell('A worker hangs or dies', situation) };
  const stats = await getReport(situation.ask, '/v1/stats');
  const [first] = stats.json<{ workers: { pid: number }[] }>().workers;
  assert.ok(first !== undefined && signal(first.pid, 'SIGSTOP'));
  await hanging.page.watch();
});

tellInTurn('a gateway is started, and replaced by a new version', prepare, {
  'start: announced, done, ready, reported to a second start; and why it cannot': async (
    situation,
  ) => {
    const { daemon } = situation;
    const page = tell('Start', situation);
    await page.run();
    await page.run();
    const pid = daemon.pid();
    await page.watch();
    await page.run();
    assert.equal(daemon.pid(), pid);
    appendFileSync(daemon.configPath, 'pol = 20\n');
    await page.run();
    situation.configure({});
    page.end();
  },
  'a new version: what is in flight is answered, and who tries again when refused notices nothing':
    async (situation) => {
      const { daemon, ask } = situation;
      const pid = daemon.pid();
      const page = tell('A new version', situation);
      const { gate, replies } = await hold(situation, 1);
      let isOver = false;
      const clients = Array.from({ length: 4 }, async () => {
        const answers: number[] = [];
        while (!isOver) answers.push(...(await askUnlessRefused(ask)));
        return answers;
      });
      await page.run();
      await page.watch();
      assert.notEqual(daemon.pid(), pid);
      isOver = true;
      const answers = (await Promise.all(clients)).flat();
      assert.ok(answers.length > 0 && answers.every((status) => status === 200), answers.join());
      await gate.open();
      assert.deepEqual(
        (await Promise.all(replies)).map(({ status }) => status),
        [200],
      );
      await gone(pid);
      await page.watch();
      page.end();
    },
});

async function askUnlessRefused(ask: Ask): Promise<readonly number[]> {
  try {
    return [(await ask.post('/v1/query', { sql: 'select 1' })).status];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return [];
    throw error;
  }
}

tellInTurn(
  'a gateway is looked at, has too much to do, loses its database and is stopped',
  // A request that waits must still wait when the test comes to its part of the page.
  () => start({ workers: '1', pool: '2', queue: '3', max_wait: '1h', statement_timeout: '10m' }),
  {
    'the numbers: state, errors, history, statements, metrics, slow statements': async (
      situation,
    ) => {
      const { ask } = situation;
      for (const [sql, params] of [
        ['select name from place where id = ? and sleep(0.1) = 0', [1]],
        ['select name from place where id = ? and sleep(0.1) = 0', [2]],
        ['select * from nowhere', []],
        ['select sleep(1.2)', []],
      ] as const) {
        await ask.post('/v1/query', { sql, params });
      }
      const page = tell('Read the numbers', situation);
      for (let looks = 0; looks < 6; looks += 1) await page.watch();
      page.end();
    },
    'too many requests: which wait, which are rejected, which hold the connections; one of them is ended':
      async (situation) => {
        const { gate, replies } = await hold(situation, 5);
        const page = tell('Too many requests', situation);
        await page.watch();
        await page.watch();
        await page.watch();
        page.end();
        const ending = tell('One statement runs too long', situation);
        await ending.watch();
        await ending.watch();
        ending.end();
        await gate.open();
        const statuses = (await Promise.all(replies)).map(({ status }: Reply) => status);
        assert.deepEqual(statuses.sort(), [200, 200, 200, 200, 504]);
      },
    'the database is down: said by readiness, replies and log, and over by itself': async (
      situation,
      t,
    ) => {
      if (!ownServerOnly(t)) return;
      const page = tell('The database is down', situation);
      await database.halt();
      try {
        await page.watch();
        await page.run();
        await page.watch();
      } finally {
        await database.resume();
      }
      await page.watch();
      page.end();
    },
    'stop: no client is let in, and the log reports the end; at once after a second signal': async (
      situation,
    ) => {
      const { daemon } = situation;
      const page = tell('Stop', situation);
      await page.run();
      await page.watch();
      assert.equal((await daemon.start()).status, 0);
      const pid = daemon.pid();
      await hold(situation, 1);
      await page.run();
      await gone(pid);
      await page.watch();
      page.end();
    },
  },
);

test('a new certificate, a new token, a new password: taken at HUP, while it serves', async (t) => {
  if (!ownServerOnly(t)) return;
  const situation = await prepareGuarded();
  t.after(situation.daemon.dispose);
  await startIt(situation);
  const { daemon, ask } = situation;
  const certificate = tell('A new certificate', situation);
  await certificate.run();
  await certificate.watch();
  certificate.end();

  const token = tell('A new token', situation);
  await token.run();
  await token.watch();
  await token.run();
  const headers = { Authorization: `Bearer ${oldToken}` };
  await eventually(
    'the old one is refused',
    async () => (await ask.get('/v1/stats', { headers })).status === 401,
  );
  await token.watch();
  token.end();

  const password = tell('A new password', situation);
  await database.query(password.texts('sql').join(';'));
  await password.run();
  await eventually(
    'it is read again',
    () => daemon.readLog().match(/ credentials read again /g)?.length === 4,
  );
  await endConnections(database, 'app');
  await password.watch();
  password.end();
  assert.doesNotMatch(daemon.readLog(), /cannot connect to the database/);
});

const oldToken = 'the-old-one';

/** A situation with a certificate, a token and a password in separate files. */
async function prepareGuarded(): Promise<Situation> {
  await database.query(`
    create user app@'%' identified by 'one';
    grant select on ${database.name}.* to app@'%'`);
  const situation = await prepare({ workers: '1' }, 'https');
  const { daemon } = situation;
  const file = (name: string) => join(daemon.directory, name);
  const authority = createAuthority(daemon.directory);
  const { cert, key } = authority.issue('old');
  authority.issue('new');
  copyFileSync(authority.cert, file('dbhttpd-ca.pem'));
  copyFileSync(cert, file('dbhttpd.pem'));
  copyFileSync(key, file('dbhttpd.key'));
  chmodSync(file('dbhttpd.key'), 0o600);
  writeFileSync(file('dbhttpd.tokens'), `${oldToken}\n`, { mode: 0o600 });
  writeFileSync(file('dbhttpd.password'), 'one', { mode: 0o600 });
  writeFileSync(file('new.password'), 'another one');
  situation.configure({
    ...{ user: 'app', password: null, password_file: file('dbhttpd.password') },
    ...{ https_cert: file('dbhttpd.pem'), https_key: file('dbhttpd.key') },
    token_file: file('dbhttpd.tokens'),
  });
  return situation;
}

test('a worker that hangs was replaced meanwhile; so is one that is ended by hand', async () => {
  const { situation, page } = hanging;
  await page.watch();
  await page.run();
  await page.watch();
  await page.watch();
  page.end();
  assert.equal(situation.daemon.workers().length, 2);
});

test('every section with commands was run', (t) => {
  if (!replicationHere(t)) return;
  const headings = new Set(blocks.map(({ heading }) => heading));
  assert.deepEqual([...reported].sort(), [...headings].sort());
});
