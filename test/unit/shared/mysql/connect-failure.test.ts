// Why a connection failed: the kind, the number and the hint that operators get.
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { mock, test } from 'node:test';
import { connectFailures } from '../../../../src/shared/failure-codes.ts';
import { RefusedError } from '../../../../src/shared/mysql/commands.ts';
import {
  describeConnectFailure,
  publicReason,
} from '../../../../src/shared/mysql/connect-failure.ts';
import { minArenaBytes, openConnection } from '../../../../src/shared/mysql/open-connection.ts';

/** As mysql2 reports a refused login, and `openConnection` how the login was protected. */
const refusal = (errno: number, protection = 'plain') =>
  Object.assign(new Error('words'), { errno, sqlMessage: 'words', code: 'ER_X', protection });

test('the server refuses the login, or accepts no connection now: its number tells which', () => {
  const kindOf = (errno: number) => describeConnectFailure(refusal(errno)).kind;
  const refused = [
    1044, 1045, 1049, 1129, 1130, 1251, 1698, 1820, 1862, 3118, 3159, 3955, 4150, 4151,
  ];
  for (const errno of refused) assert.equal(kindOf(errno), 'login refused', `${errno}`);
  for (const errno of [1040, 1047, 1053, 1203, 1226, 3032]) {
    assert.equal(kindOf(errno), 'server unavailable', `${errno}`);
  }
});

test('1045 stands for all that an account may require: the hint names what the login did not have', () => {
  const hintOf = (protection: string) =>
    describeConnectFailure(refusal(1045, protection)).hint ?? '';
  assert.match(
    hintOf('plain'),
    /^the user or the password is wrong, .*REQUIRE SSL.* `tls` is off$/,
  );
  assert.match(hintOf('tls'), /REQUIRE X509.* `tls_cert` is not set$/);
  assert.match(hintOf('certificate'), /another client certificate$/);
});

test('a session of an account whose password has expired is refused by name', () => {
  const error = new RefusedError({ errno: 1820, sqlState: 'HY000', message: "select 'secret'" });
  const { kind, errno, reason, hint } = describeConnectFailure(error);
  assert.deepEqual([kind, errno], ['login refused', 1820]);
  assert.equal(hint, 'the password of the account has expired');
  assert.doesNotMatch(reason, /secret/);
});

test('a name that DNS does not know is not the fault of the server', () => {
  for (const [code, errno, hint] of [
    ['ENOTFOUND', -3008, 'DNS does not know the name that `host` has'],
    ['EAI_AGAIN', -3001, 'DNS does not answer; the database server was not asked'],
  ] as const) {
    const fields = { code, errno, syscall: 'getaddrinfo' };
    const error = Object.assign(new Error(`getaddrinfo ${code} db.invalid`), fields);
    const failure = describeConnectFailure(error);
    assert.deepEqual([failure.kind, failure.hint], ['name unresolved', hint]);
    assert.equal(publicReason(failure), 'the name of the database server cannot be resolved');
  }
});

test('if the time is over while DNS is silent, the failure is the name, and else the silent server', async () => {
  const lookup = mock.method(dns, 'lookup', () => {});
  const settings = {
    port: 1,
    socket: null,
    user: 'app',
    password: '',
    database: 'd',
    tls: null,
    serverKeys: [],
    connectTimeoutMs: 60_000,
    arena: Buffer.alloc(minArenaBytes),
  };
  try {
    const opening = openConnection({ ...settings, host: 'db.test' }, AbortSignal.timeout(50));
    const failure = await opening.then(() => assert.fail('it opened'), describeConnectFailure);
    assert.equal(failure.kind, 'name unresolved');
    assert.equal(failure.reason, 'DNS did not answer in time');
    assert.match(failure.hint ?? '', /^DNS does not answer; the database server was not asked$/);
  } finally {
    lookup.mock.restore();
  }
  const late = Object.assign(new Error('late'), { code: 'ETIMEDOUT' });
  assert.equal(describeConnectFailure(late).kind, 'server silent');
});

test('each kind has a meaning of its own for clients, without names', () => {
  const meanings = Object.values(connectFailures).map(({ meaning }) => meaning);
  assert.equal(new Set(meanings).size, meanings.length);
  const numbered = describeConnectFailure(refusal(1045));
  assert.equal(
    publicReason(numbered),
    "the database server refuses the gateway's login (errno 1045)",
  );
});
