// The file of clients and the keys of JSON Web Tokens decide whether the gateway starts, and are read again at SIGHUP, all or nothing.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Stats } from '../../../src/shared/observe/stats.ts';
import { createAsk } from '../../support/ask.ts';
import { bearing } from '../../support/clients-file.ts';
import { type Daemon, daemonFor } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { logShows } from '../../support/log-shows.ts';
import { getReport } from '../../support/reports.ts';

const digest = createHash('sha256').update('of the client').digest('hex');
const web = `[web]\nallow = sql\ntoken_sha256 = ${digest}\n`;

/** A daemon that is not started, and what writes its clients file. */
function prepare(t: TestContext) {
  const daemon = daemonFor(t);
  const path = join(daemon.directory, 'clients.ini');
  const write = (text: string) => writeFileSync(path, text, { mode: 0o600 });
  daemon.configure({ token: 'of-the-section', clients: path });
  return { daemon, path, write };
}

const reportOf = (daemon: Daemon, path: string, token: string) =>
  getReport(createAsk(`http://${daemon.address()}`), path, { headers: bearing(token) });

async function ask(daemon: Daemon, path: string): Promise<string> {
  const { status, text } = await reportOf(daemon, path, 'of-the-section');
  assert.equal(status, 200);
  return text;
}

const faultsOf = async (daemon: Daemon) =>
  (JSON.parse(await ask(daemon, '/v1/stats')) as Stats).file_faults;

async function gaugesOf(daemon: Daemon): Promise<readonly string[]> {
  const text = await ask(daemon, '/metrics');
  return text.split('\n').filter((line) => /^dbhttpd_(file_faults|client_expiry)/.test(line));
}

test('a faulty file of clients exits 78 silently, with every fault and its line in the log', async (t) => {
  const { daemon, path, write } = prepare(t);
  write(`${web}alow = sql\n[web]\n[Other]\nallow = sqll\n`);
  assert.deepEqual(await daemon.start(), { status: 78, stdout: '', stderr: '' });
  const log = daemon.readLog();
  for (const place of [
    '[web] alow (line 4)',
    '[web] (line 5)',
    '[Other] (line 6)',
    '[Other] allow (line 7)',
  ]) {
    assert.ok(log.includes(`${path}: ${place}: `), place);
  }
  assert.ok(!log.includes(digest));
  const { status, stderr } = await daemon.run(['--check']);
  assert.equal(status, 78);
  assert.equal(stderr.trim().split('\n').length, 5);
});

test('SIGHUP takes a file of clients, or leaves the one before in force and shows every fault', async (t) => {
  const { daemon, path, write } = prepare(t);
  write(web);
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  assert.deepEqual(await faultsOf(daemon), []);
  assert.deepEqual(await gaugesOf(daemon), [
    'dbhttpd_file_faults{section="world",key="clients"} 0',
  ]);

  write(`${web}queue = many\nshare = 0\n`);
  process.kill(daemon.pid(), 'SIGHUP');
  for (const [key, line, problem] of [
    ['queue', 4, 'must be a whole number'],
    ['share', 5, 'must be from 1 to 1000'],
  ]) {
    const fields = `key=clients at="${path}: \\[web\\] ${key} \\(line ${line}\\)" problem="${problem}"`;
    await logShows(daemon, new RegExp(`error .*stays in use ${fields}`));
  }
  await logShows(daemon, /credentials read again files=1 faults=2/);
  assert.deepEqual(await faultsOf(daemon), [
    {
      ...{ section: 'world', key: 'clients', at: `${path}: [web] queue (line 4)` },
      problem: 'must be a whole number',
    },
    {
      ...{ section: 'world', key: 'clients', at: `${path}: [web] share (line 5)` },
      problem: 'must be from 1 to 1000',
    },
  ]);
  assert.deepEqual(await gaugesOf(daemon), [
    'dbhttpd_file_faults{section="world",key="clients"} 2',
  ]);

  const tomorrow = new Date(Date.now() + 24 * 60 * 60 * 1000).toISOString().slice(0, 10);
  write(
    `${web}expires = ${tomorrow}\n[old]\nallow = sql\ntoken_sha256 = ${digest.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))}\nexpires = 2020-01-01\n`,
  );
  process.kill(daemon.pid(), 'SIGHUP');
  await logShows(
    daemon,
    /warn .*a client expires soon client=web problem="expires on .* in less than/,
  );
  await logShows(daemon, /warn .*a client is rejected client=old problem="expired on 2020-01-01/);
  assert.deepEqual(await faultsOf(daemon), []);
  assert.deepEqual(await gaugesOf(daemon), [
    `dbhttpd_client_expiry_timestamp_seconds{section="world",client="web"} ${Date.parse(tomorrow) / 1000}`,
    `dbhttpd_client_expiry_timestamp_seconds{section="world",client="old"} ${Date.parse('2020-01-01') / 1000}`,
    'dbhttpd_file_faults{section="world",key="clients"} 0',
  ]);
});

test('a client that SIGHUP has removed stays removed, though a faulty file comes next and all workers are killed', async (t) => {
  const { daemon, write } = prepare(t);
  const file = (name: string) => {
    const tokenDigest = createHash('sha256').update(`of-${name}`).digest('hex');
    return `[${name}]\nallow = observe\ntoken_sha256 = ${tokenDigest}\n`;
  };
  const statusOf = async (name: string) =>
    (await reportOf(daemon, '/v1/stats', `of-${name}`)).status;
  write(file('leaving') + file('staying'));
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  assert.deepEqual([await statusOf('leaving'), await statusOf('staying')], [200, 200]);

  write(file('staying'));
  process.kill(daemon.pid(), 'SIGHUP');
  await logShows(daemon, /credentials read again files=1 faults=0/);
  write(`${file('leaving')}share = 0\n`);
  process.kill(daemon.pid(), 'SIGHUP');
  await logShows(daemon, /credentials read again files=1 faults=1/);

  const killed = daemon.workers();
  for (const pid of killed) process.kill(pid, 'SIGKILL');
  await eventually('other workers serve', () => {
    const now = daemon.workers();
    return now.length === killed.length && now.every((pid) => !killed.includes(pid));
  });
  assert.deepEqual([await statusOf('leaving'), await statusOf('staying')], [401, 200]);
});
