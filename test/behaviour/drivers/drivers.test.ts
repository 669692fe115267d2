// The promise of drivers = planetscale: which logins are accepted, what is rejected and how, what a session carries.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect } from '@planetscale/database';
import { command } from '../../support/command.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  createDriver,
  driverError,
  driverSettings,
  driverUrl,
  postAsDriver,
} from '../../support/driver.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { formatSection } from '../../support/ini-text.ts';
import { endRequest, getReport } from '../../support/reports.ts';
import { createWorkspace } from '../../support/workspace.ts';

const origin = 'https://app.example';

let database: Database;
let gateway: Gateway;
before(async () => {
  database = await startDatabase();
  gateway = await startGateway({
    database,
    settings: { ...driverSettings, workers: 2, allow_origins: origin, access_log: 'json' },
  });
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
});

const code = ({ body }: { body: Record<string, unknown> }) =>
  (body.error as { code?: string })?.code;

const namesTheKey = /set drivers = planetscale and a token/;

test('the paths exist only with drivers = planetscale, and take POST', async () => {
  const plain = await startGateway({
    database,
    settings: { token: driverSettings.token, workers: 1 },
  });
  try {
    const reply = await postAsDriver(plain, { query: 'select 1' });
    // A client that is no driver needs a bearer token before it gets any other reply.
    assert.deepEqual([reply.status, code(reply)], [401, 'UNAUTHORIZED']);
    const { message } = await driverError(createDriver(plain).execute('select 1'));
    assert.match(message, namesTheKey);
    const headers = { Authorization: `Bearer ${driverSettings.token}` };
    const missing = await postAsDriver(plain, { query: 'select 1' }, { headers });
    assert.deepEqual([missing.status, code(missing)], [404, 'NOT_FOUND']);
    assert.match((missing.body.error as { message: string }).message, namesTheKey);
  } finally {
    await plain.stop();
  }
  const reply = await fetch(`${gateway.url}/psdb.v1alpha1.Database/Execute`, {
    headers: {
      Authorization: `Basic ${Buffer.from(`a:${driverSettings.token}`).toString('base64')}`,
    },
  });
  assert.deepEqual([reply.status, reply.headers.get('allow')], [405, 'POST']);
});

test('a token is taken as the password, with any user name, and a bearer token is not', async () => {
  for (const user of ['app', '', 'é%20:']) {
    const headers = {
      Authorization: `Basic ${Buffer.from(`${user.replace(':', '')}:${driverSettings.token}`).toString('base64')}`,
    };
    const reply = await postAsDriver(gateway, { query: 'select 1' }, { headers });
    assert.equal(reply.status, 200);
  }
  for (const authorization of [
    '',
    'Basic',
    'Basic %',
    `Bearer ${driverSettings.token}`,
    'Basic OmE=',
  ]) {
    const headers = { Authorization: authorization };
    const reply = await postAsDriver(gateway, { query: 'select 1' }, { headers });
    assert.deepEqual([reply.status, code(reply)], [401, 'UNAUTHORIZED'], authorization);
  }
  const bearer = await fetch(`${gateway.url}/v1/query`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Authorization: `Basic ${Buffer.from(`a:${driverSettings.token}`).toString('base64')}`,
    },
    body: '{"sql":"select 1"}',
  });
  assert.equal(bearer.status, 401);
});

test('requests that cannot be understood are refused, and say why', async () => {
  const { session } = (await postAsDriver(gateway, {}, { method: 'CreateSession' })).body;
  for (const [body, status, expected] of [
    ['{', 400, 'BAD_JSON'],
    ['[]', 400, 'BAD_JSON'],
    [{}, 400, 'NO_SQL'],
    [{ query: '  ' }, 400, 'NO_SQL'],
    [{ query: null }, 400, 'NO_SQL'],
    [{ query: 1 }, 400, 'BAD_KEY'],
    ['{"query":"select \'\\ud800\'"}', 400, 'BAD_KEY'],
    [{ query: 'select 1', session: { signature: 'x' } }, 400, 'BAD_KEY'],
    [{ query: 'select 1', session: 'text' }, 400, 'BAD_KEY'],
    [{ query: 'select 1; select 2' }, 400, 'SEVERAL_STATEMENTS'],
    [{ query: 'select 1; -- and' }, 400, 'SEVERAL_STATEMENTS'],
    [{ query: "select '\\'' from dual; delete from t where a = '\\''" }, 400, 'SEVERAL_STATEMENTS'],
    [{ query: 'set autocommit = 0' }, 400, 'NOT_IN_TRANSACTION'],
    [{ query: 'commit and chain', session }, 400, 'NOT_IN_TRANSACTION'],
  ] as const) {
    const reply = await postAsDriver(gateway, body);
    const message = JSON.stringify(body);
    assert.deepEqual([reply.status, code(reply)], [status, expected], message);
    assert.deepEqual(Object.keys(reply.body), ['error']);
  }
  const type = await postAsDriver(
    gateway,
    { query: 'select 1' },
    { headers: { 'Content-Type': 'text/plain' } },
  );
  assert.deepEqual([type.status, code(type)], [415, 'UNSUPPORTED_MEDIA_TYPE']);
  const host = await fetch(`${gateway.url}/psdb.v1alpha1.Database/Execute`, {
    method: 'POST',
    headers: { Origin: 'https://evil.example' },
  });
  assert.equal(host.status, 403);
});

test("a literal with a backslash before its quote is one, as other clients' formatters write it", async () => {
  const { rows } = await createDriver(gateway).execute("select 'it\\'s; one' as a");
  assert.deepEqual(rows, [{ a: "it's; one" }]);
});

test('a session is opaque, goes from worker to worker, and outside of a transaction nothing is held for it', async () => {
  const connection = connect({ url: driverUrl(gateway) });
  await connection.refresh();
  for (let turn = 0; turn < 12; turn += 1) {
    const { rows } = await connection.execute("select 'one' as one");
    assert.deepEqual(rows, [{ one: 'one' }]);
  }
  for (const sql of [
    'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE',
    'SET SESSION TRANSACTION READ ONLY',
    'COMMIT',
    'ROLLBACK',
  ]) {
    const { rows, rowsAffected } = await connection.execute(sql);
    assert.deepEqual([rows, rowsAffected], [[], 0]);
  }
});

test('a statement that changes its session changes no other', async () => {
  const driver = createDriver(gateway);
  await Promise.all(
    Array.from({ length: 30 }, () => driver.execute("set time_zone = '+07:00', @a = 1")),
  );
  const { rows } = await driver.execute(
    'select @a as a, @@session.time_zone = @@global.time_zone as same',
  );
  const { a, same } = rows[0] ?? {};
  // A comparison is INT to MariaDB and BIGINT to MySQL.
  assert.deepEqual([a, Number(same)], [null, 1]);
});

test('pages of a listed origin may call, with the headers that the driver sends', async () => {
  const url = `${gateway.url}/psdb.v1alpha1.Database/Execute`;
  const leave = await fetch(url, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'authorization,content-type,user-agent',
    },
  });
  assert.equal(leave.status, 204);
  const allowed = (leave.headers.get('access-control-allow-headers') ?? '')
    .toLowerCase()
    .split(/, */);
  for (const header of ['authorization', 'content-type', 'user-agent']) {
    assert.ok(allowed.includes(header), header);
  }
  const reply = await postAsDriver(gateway, { query: 'select 1' }, { headers: { Origin: origin } });
  assert.equal(reply.headers.get('access-control-allow-origin'), origin);
});

test('the access log has the user name of an accepted client, and no password', async () => {
  await postAsDriver(
    gateway,
    { query: 'select 1 as logged' },
    {
      headers: {
        'X-Request-ID': 'let-in',
        Authorization: `Basic ${Buffer.from(`shop "one"\n:${driverSettings.token}`).toString('base64')}`,
      },
    },
  );
  await postAsDriver(
    gateway,
    { query: 'select 1' },
    { password: 'wrong', headers: { 'X-Request-ID': 'kept-out' } },
  );
  const text = () => readFileSync(join(gateway.directory, 'log.access.log'), 'utf8');
  const userOf = (id: string) =>
    eventually(`the line of ${id}`, () => {
      const line = text()
        .split('\n')
        .find((one) => one.includes(`"request_id":"${id}"`));
      return line === undefined ? null : (JSON.parse(line) as { user: unknown });
    });
  assert.equal((await userOf('let-in')).user, 'shop "one"\n');
  assert.equal((await userOf('kept-out')).user, null);
  assert.ok(
    !text().includes(driverSettings.token) && !gateway.log().includes(driverSettings.token),
  );
});

test('statements of drivers are counted, and can be seen and ended while they run', async () => {
  const driver = createDriver(gateway);
  const running = driverError(driver.execute("select sleep(50), 'of a driver'"));
  const headers = { Authorization: `Bearer ${driverSettings.token}` };
  const reported = async () => {
    const reply = await fetch(`${gateway.url}/v1/requests`, { headers });
    const { requests } = (await reply.json()) as {
      requests: { id: string; shape: string | null }[];
    };
    return requests.find(({ shape }) => shape?.includes('sleep'));
  };
  const { id } = await eventually('the request that runs', reported);
  await endRequest(gateway, id, { headers });
  const error = await running;
  assert.deepEqual([error.status, error.body.code], [504, 'KILLED']);
  const { text } = await getReport(gateway, '/metrics', { headers });
  assert.match(text, /endpoint="driver_execute"/);
});

test('a configuration that would be unsafe is refused at the start', async () => {
  const workspace = createWorkspace('drivers', () => {});
  try {
    for (const [settings, expected] of [
      [{ drivers: 'planetscale' }, /\bdrivers\b.*needs `token`/],
      [
        { ...driverSettings, init_sql: "set sql_mode = 'no_backslash_escapes'" },
        /\bdrivers\b.*NO_BACKSLASH_ESCAPES/,
      ],
      [{ drivers: 'mysql' }, /\bdrivers\b/],
    ] as const) {
      const path = join(workspace.path, 'faulty.ini');
      const { name, user, host, port, password } = database;
      const account = {
        database: name,
        user,
        host,
        port,
        ...(password === '' ? {} : { password }),
      };
      writeFileSync(path, formatSection('world', { ...account, ...settings }), { mode: 0o600 });
      const { status, output } = await check(path);
      assert.equal(status, 78, output);
      assert.match(output, expected);
    }
  } finally {
    workspace.remove();
  }
});

function check(path: string): Promise<{ status: number; output: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [command, '--check', '-c', path, '-s', 'world'],
      (_error, stdout, stderr) => {
        resolve({ status: child.exitCode ?? -1, output: stdout + stderr });
      },
    );
  });
}
