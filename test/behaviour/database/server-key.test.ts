// The promise of server_public_key: over TCP without TLS a password leaves under no other key. The start and --check say what to set.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { daemonFor } from '../../support/daemon.ts';
import { type FakeMysql, startFakeMysql } from '../../support/database/fake-mysql.ts';
import { okPacket } from '../../support/database/mysql-answer.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { logShows } from '../../support/log-shows.ts';
import { useDatabase } from '../../support/use-gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';

const database = useDatabase();
const workspace = createWorkspace('server-key', () => {});
const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = pair.publicKey.export({ type: 'spki', format: 'pem' }).toString();
let fake: FakeMysql;
before(async () => {
  fake = await startFakeMysql();
});
after(async () => {
  await fake.stop();
  workspace.remove();
});

function write(name: string, text: string): string {
  const path = join(workspace.path, name);
  writeFileSync(path, text);
  return path;
}

const accountOf = ({ target }: FakeMysql) => ({
  host: target.host,
  port: String(target.port),
  user: target.user,
  password: target.password,
  database: target.name,
});

/** Answers as MySQL does for caching_sha2_password. @param second what follows the client's token */
function askByCachingSha2(second: (sequence: number) => readonly Buffer[]): Buffer[] {
  const came: Buffer[] = [];
  const change = Buffer.from(`\u00fecaching_sha2_password\0${'s'.repeat(20)}\0`, 'latin1');
  const key = Buffer.concat([Buffer.from([1]), Buffer.from(pem)]);
  fake.behave({
    plugin: 'caching_sha2_password',
    authenticate: (client, { payload, sequence }, packets) => {
      came.push(payload);
      const isOver = packets > 0 && second(packets).length > 1;
      const next = packets === 0 ? [change] : packets === 1 ? second(packets) : [key];
      client.send(next, sequence + 1);
      return isOver;
    },
  });
  return came;
}

test('a file that holds no key is a fault of the configuration: 78', async (t) => {
  const missing = join(workspace.path, 'missing.pem');
  for (const [path, problem] of [
    [missing, /server_public_key: cannot be read \(ENOENT\)/],
    [write('garbage.pem', 'garbage\n'), /server_public_key: holds no public key \(PEM\)/],
  ] as const) {
    const daemon = daemonFor(t, { server_public_key: path });
    const started = await daemon.start();
    assert.equal(started.status, 78);
    await logShows(daemon, problem);
    assert.match((await daemon.run(['--check'])).stderr, problem);
  }
  const useless = daemonFor(t, { server_public_key: write('good.pem', pem), tls: 'required' });
  assert.equal((await useless.start()).status, 78);
  await logShows(useless, /server_public_key: .* does nothing with `tls`/);
});

test('a process that holds the port of MySQL gets no password, and log and --check name the key to set', async (t) => {
  const came = askByCachingSha2(() => [Buffer.from([1, 4])]);
  const daemon = daemonFor(t, accountOf(fake));
  assert.equal((await daemon.start()).status, 0);
  const reported = /INSECURE_PASSWORD/;
  await eventually('the log says why', () => reported.test(daemon.readLog()));
  await logShows(daemon, /set server_public_key .*, tls, or socket/);
  const checked = await daemon.run(['--check']);
  assert.equal(checked.status, 69);
  assert.match(checked.stderr, /set server_public_key .*, tls, or socket/);
  // The first packet of a login, and a token of 32 bytes: nothing of 256, which a password under a key is.
  assert.ok(came.length > 0);
  assert.deepEqual([...new Set(came.map(({ length }) => length >= 200))], [false]);
});

test('a login that works only while the server remembers it is a warning in log and --check', async (t) => {
  askByCachingSha2(() => [Buffer.from([1, 3]), okPacket()]);
  const daemon = daemonFor(t, accountOf(fake));
  assert.equal((await daemon.start()).status, 0);
  const reported = /warn .*the login works only while the server remembers the password/;
  await eventually('the log warns', () => reported.test(daemon.readLog()));
  const checked = await daemon.run(['--check']);
  assert.match(checked.stdout, /warning: the login works only while the server remembers/);
});

test('MySQL itself: the pinned key lets the gateway in when the server has forgotten the password', async (t) => {
  if (database.flavour !== 'mysql') {
    t.skip('MariaDB has no such method');
    return;
  }
  const user = `key_${database.name.slice(-8)}`;
  await database.query(`create user ${user} identified with caching_sha2_password by 'secret'`);
  await database.query(`grant select on ${database.name}.* to ${user}`);
  const { host, port, name } = database;
  const target = { host, port, name, user, password: 'secret' };
  const without = await startGateway({ database: target, settings: { workers: 1 } });
  const refused = await without.db({ SQL: 'select 1' });
  assert.equal(refused.status, 503, refused.text);
  await without.stop();
  const path = write('mysql.pem', `${pem}\n${database.serverKey}`);
  const pinned = { workers: 1, server_public_key: path };
  const gateway = await startGateway({ database: target, settings: pinned });
  assert.equal((await gateway.db({ SQL: 'select 1' })).status, 200);
  await gateway.stop();
  await database.query(`drop user ${user}`);
});
