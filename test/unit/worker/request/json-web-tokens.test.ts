// JSON Web Tokens: the conditions under which they are accepted, their clients, and that forged ones keep no other client waiting.
import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { test } from 'node:test';
import { type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose';
import { type Client, defaultClient } from '../../../../src/shared/clients/client.ts';
import type { JwtAlgorithm, JwtKey } from '../../../../src/shared/config/jwt-keys.ts';
import { BoundedWork } from '../../../../src/worker/request/bounded-work.ts';
import { type Identified, Identifier } from '../../../../src/worker/request/identify.ts';
import { JsonWebTokens } from '../../../../src/worker/request/json-web-tokens.ts';

const issuer = 'https://login.example';
const audience = 'dbhttpd';
const names = { issuer, audience };

/** A key pair, and its public half as the gateway has it. */
type Pair = { readonly privateKey: KeyObject; readonly key: JwtKey };

function createPair(
  alg: JwtAlgorithm,
  kid: string | null,
  made: { publicKey: KeyObject; privateKey: KeyObject },
): Pair {
  const jwk = made.publicKey.export({ format: 'jwk' });
  const key = { ...jwk, alg, ...(kid !== null && { kid }) } as JwtKey;
  return { privateKey: made.privateKey, key };
}

const createRsa = () => generateKeyPairSync('rsa', { modulusLength: 2048 });
const rsa = createPair('RS256', 'rsa', createRsa());
const pss = createPair('PS256', 'pss', createRsa());
const ec = createPair('ES256', 'ec', generateKeyPairSync('ec', { namedCurve: 'P-256' }));
const ed = createPair('EdDSA', 'ed', generateKeyPairSync('ed25519'));
const pairs = [rsa, pss, ec, ed];

const web: Client = {
  ...defaultClient,
  name: 'web',
  allow: ['sql'],
  conditions: [{ path: ['role'], value: 'web' }],
};
const seconds = () => Math.floor(Date.now() / 1000);

const usualClaims = (): JWTPayload => ({
  iss: issuer,
  aud: audience,
  sub: 'ann',
  role: 'web',
  exp: seconds() + 300,
});

/** A signed token. A claim or parameter that is undefined is left out. */
function sign(
  claims: JWTPayload = {},
  header: Partial<JWTHeaderParameters> = {},
  { privateKey, key }: Pair = ed,
): Promise<string> {
  const all = { alg: key.alg, ...(key.kid !== undefined && { kid: key.kid }), ...header };
  return new SignJWT({ ...usualClaims(), ...claims }).setProtectedHeader(all).sign(privateKey);
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token that jose would not sign. */
function forge(header: object, claims: JWTPayload = {}, signature = 'AAAA'): string {
  return `${encode(header)}.${encode({ ...usualClaims(), ...claims })}.${signature}`;
}

type Wish = {
  readonly keys?: readonly JwtKey[];
  readonly clients?: readonly Client[];
  readonly rereadKeys?: () => Promise<unknown>;
};

const credentialsOf = ({ keys = pairs.map(({ key }) => key), clients = [web] }: Wish) => ({
  tokens: [],
  access: {
    clients: { clients, anonymous: { ...defaultClient, name: 'anonymous' } },
    jwtKeys: keys,
  },
});

function identifierOf(wish: Wish = {}): Identifier {
  const { rereadKeys = () => Promise.resolve() } = wish;
  return new Identifier(credentialsOf(wish), { names, rereadKeys });
}

const headersOf = (token: string) => ({ authorization: `Bearer ${token}` });
const nameOf = (found: Identified) =>
  found.ok ? `${found.caller.client.name} ${found.caller.user}` : found.failure.code;

async function ask(identifier: Identifier, token: string): Promise<string> {
  return nameOf(await identifier.identify(headersOf(token), 'bearer'));
}

/** The code of a token that is rejected without a look at its signature. */
function rejectAtOnce(identifier: Identifier, token: string): string {
  const found = identifier.identify(headersOf(token), 'bearer');
  assert.ok(!(found instanceof Promise), 'its signature is verified');
  return nameOf(found);
}

test('a token of each algorithm is accepted for its client and its user, and known at once from then on', async () => {
  const identifier = identifierOf();
  for (const pair of pairs) {
    const token = await sign({}, {}, pair);
    const first = identifier.identify(headersOf(token), 'bearer');
    assert.ok(first instanceof Promise, 'a new token is verified');
    const found = await first;
    assert.equal(nameOf(found), 'web ann', pair.key.alg);
    assert.ok(found.ok && found.caller.claims.role === 'web');
    const second = identifier.identify(headersOf(token), 'bearer');
    assert.ok(!(second instanceof Promise) && second.ok);
    assert.equal(second.caller, found.caller);
  }
});

test('a token is accepted as the password of a driver too', async () => {
  const password = Buffer.from(`app:${await sign()}`).toString('base64');
  const found = await identifierOf().identify({ authorization: `Basic ${password}` }, 'basic');
  assert.equal(nameOf(found), 'web ann');
});

test('requests that bring the same new token share its verification', async () => {
  const { identify } = identifierOf();
  const token = await sign();
  const [one, two] = await Promise.all([1, 2].map(() => identify(headersOf(token), 'bearer')));
  assert.ok(one?.ok && two?.ok);
  assert.equal(one.caller, two.caller);
});

test('the key decides about the algorithm, and never the token', async () => {
  const identifier = identifierOf();
  const publicPem = rsa.key;
  const input = `${encode({ alg: 'HS256', kid: 'rsa' })}.${encode(usualClaims())}`;
  const secrets = [
    JSON.stringify(publicPem),
    String(publicPem.n),
    Buffer.from(String(publicPem.n), 'base64url'),
  ];
  const byHmac = secrets.map(
    (secret) => `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`,
  );
  const otherOfKey = await sign(
    {},
    { alg: 'PS256' },
    { ...rsa, key: { ...rsa.key, alg: 'PS256' } },
  );
  for (const token of [
    forge({ alg: 'none', kid: 'rsa' }),
    forge({ alg: 'none', kid: 'rsa' }, {}, ''),
    forge({ alg: 'None' }),
    forge({ alg: 'HS256', kid: 'rsa' }),
    forge({ kid: 'rsa' }),
    forge({ alg: ['RS256'], kid: 'rsa' }),
    ...byHmac,
    otherOfKey,
    await sign({}, { kid: 'rsa' }, pss),
    await sign({}, { kid: 'ed' }, ec),
  ]) {
    assert.equal(rejectAtOnce(identifier, token), 'UNAUTHORIZED', token.slice(0, 60));
  }
  const forged = forge({ alg: 'RS256', kid: 'rsa' });
  assert.equal(await ask(identifier, forged), 'UNAUTHORIZED');
});

test('a token whose claims or header were changed is rejected', async () => {
  const identifier = identifierOf();
  const [header = '', claims = '', signature = ''] = (await sign()).split('.');
  const other = (await sign({ sub: 'bob' })).split('.')[1] ?? '';
  for (const token of [
    `${header}.${other}.${signature}`,
    `${encode({ alg: 'EdDSA', kid: 'ed', typ: 'JWT' })}.${claims}.${signature}`,
    `${header}.${claims}.${signature.slice(0, -4)}`,
    `${header}.${claims}.`,
    `${header}.${claims}`,
    `${header}.${claims}.${signature}.${signature}`,
    `${header}..${signature}`,
    `.${claims}.${signature}`,
    '..',
    `${Buffer.from('[]').toString('base64url')}.${claims}.${signature}`,
    `${header}.${Buffer.from('null').toString('base64url')}.${signature}`,
    `${header}.${Buffer.from('{"a":"\xff"}', 'latin1').toString('base64url')}.${signature}`,
  ]) {
    assert.equal(await ask(identifier, token), 'UNAUTHORIZED', token.slice(0, 60));
  }
});

test('exp, iss, aud and sub must be there and be right', async () => {
  const identifier = identifierOf();
  for (const claims of [
    { exp: undefined },
    { exp: String(seconds() + 300) },
    { iss: undefined },
    { iss: 'https://evil.example' },
    { iss: `${issuer}/` },
    { aud: undefined },
    { aud: 'other' },
    { aud: [] },
    { aud: ['other', 'dbhttpd2'] },
    { sub: undefined },
    { sub: '' },
    { sub: 7 },
    { nbf: 'now' },
    { iat: 'now' },
    { role: 'other' },
    { role: undefined },
  ]) {
    const token = await sign(claims as JWTPayload);
    assert.equal(rejectAtOnce(identifier, token), 'UNAUTHORIZED', JSON.stringify(claims));
  }
  assert.equal(await ask(identifier, await sign({ aud: ['other', audience] })), 'web ann');
});

test('clocks may differ by 30 s', async (t) => {
  const now = Date.parse('2026-06-01T12:00:00Z');
  t.mock.timers.enable({ apis: ['Date'], now });
  const at = now / 1000;
  const identifier = identifierOf();
  assert.equal(await ask(identifier, await sign({ exp: at - 29 })), 'web ann');
  assert.equal(rejectAtOnce(identifier, await sign({ exp: at - 30 })), 'UNAUTHORIZED');
  assert.equal(rejectAtOnce(identifier, await sign({ exp: at - 31 })), 'UNAUTHORIZED');
  assert.equal(await ask(identifier, await sign({ nbf: at + 29 })), 'web ann');
  assert.equal(rejectAtOnce(identifier, await sign({ nbf: at + 31 })), 'UNAUTHORIZED');
});

test('a known token is rejected once it has expired', async (t) => {
  const now = Date.parse('2026-06-01T12:00:00Z');
  t.mock.timers.enable({ apis: ['Date'], now });
  const identifier = identifierOf();
  const token = await sign({ exp: now / 1000 + 60 });
  assert.equal(await ask(identifier, token), 'web ann');
  t.mock.timers.setTime(now + 89_999);
  assert.equal(await ask(identifier, token), 'web ann');
  t.mock.timers.setTime(now + 90_000);
  assert.equal(await ask(identifier, token), 'UNAUTHORIZED');
});

test('typ may be JWT or at+jwt, and no extension is critical', async () => {
  const identifier = identifierOf();
  for (const typ of ['JWT', 'jwt', 'at+jwt', 'AT+JWT']) {
    assert.equal(await ask(identifier, await sign({}, { typ })), 'web ann', typ);
  }
  for (const typ of ['', 'JWS', 'dpop+jwt', 'id+jwt', 'logout+jwt', 'xJWT']) {
    assert.equal(rejectAtOnce(identifier, await sign({}, { typ })), 'UNAUTHORIZED', typ);
  }
  for (const crit of [[], ['b64'], ['exp'], 'x', null]) {
    const token = forge({ alg: 'EdDSA', kid: 'ed', crit });
    assert.equal(rejectAtOnce(identifier, token), 'UNAUTHORIZED', JSON.stringify(crit));
  }
});

test('a condition holds for the claim itself, an array and a space-separated list, at its path alone', async () => {
  const at = (...path: string[]) => [{ path, value: 'web' }];
  const holds = async (conditions: Client['conditions'], claims: JWTPayload) => {
    const identifier = identifierOf({ clients: [{ ...web, conditions }] });
    return (await ask(identifier, await sign({ role: undefined, ...claims }))) === 'web ann';
  };
  for (const [claims, path] of [
    [{ role: 'web' }, ['role']],
    [{ role: ['other', 'web'] }, ['role']],
    [{ scope: 'openid web' }, ['scope']],
    [{ realm: { roles: ['web'] } }, ['realm', 'roles']],
    [{ 'https://example.com/roles': ['web'] }, ['https://example.com/roles']],
    [{ 'a.b': { c: 'web' } }, ['a.b', 'c']],
  ] as const) {
    assert.equal(await holds(at(...path), claims as JWTPayload), true, path.join());
  }
  for (const [claims, path] of [
    [{ role: 'webs' }, ['role']],
    [{ role: 'Web' }, ['role']],
    [{ role: ['a web'] }, ['role']],
    [{ role: [['web']] }, ['role']],
    [{ role: { web: true } }, ['role']],
    [{ role: { web: 'web' } }, ['role', '0']],
    [{ realm: { roles: ['web'] } }, ['realm.roles']],
    [{ realm: 'web' }, ['realm', 'roles']],
    [{ realm: ['web'] }, ['realm', '0']],
    [{ role: null }, ['role', 'x']],
    [{}, ['constructor', 'name']],
    [{}, ['__proto__']],
  ] as const) {
    assert.equal(await holds(at(...path), claims as JWTPayload), false, path.join());
  }
  const isNumber = [{ path: ['tenant'], value: '7' }];
  assert.equal(await holds(isNumber, { tenant: 7 }), true);
  assert.equal(await holds(isNumber, { tenant: 70 }), false);
  assert.equal(await holds([{ path: ['verified'], value: 'true' }], { verified: true }), true);
});

test('all conditions must hold, the first client of the file wins, and one that has expired is no way in', async () => {
  const both = [...web.conditions, { path: ['team'], value: 'a' }];
  const clients: readonly Client[] = [
    { ...web, name: 'none', conditions: [] },
    { ...web, name: 'both', conditions: both },
    { ...web, name: 'second' },
    { ...web, name: 'third' },
  ];
  const identifier = identifierOf({ clients });
  assert.equal(await ask(identifier, await sign()), 'second ann');
  assert.equal(await ask(identifier, await sign({ team: 'a' })), 'both ann');
  const expired = clients.map((client) => ({ ...client, expiresAt: 1 }));
  assert.equal(await ask(identifierOf({ clients: expired }), await sign()), 'UNAUTHORIZED');
});

test('users of one client, and one user of two clients, own different things', async () => {
  const identifier = identifierOf({
    clients: [web, { ...web, name: 'app', conditions: [{ path: ['role'], value: 'app' }] }],
  });
  const ownerOf = async (claims: JWTPayload) => {
    const found = await identifier.identify(headersOf(await sign(claims)), 'bearer');
    return found.ok ? found.caller.owner : assert.fail();
  };
  const owners = await Promise.all([{}, { sub: 'bob' }, { role: 'app' }].map(ownerOf));
  assert.equal(new Set(owners).size, 3);
  assert.equal(await ownerOf({ iat: seconds() - 1 }), owners[0]);
});

test('the only key needs no name, and one of several is found by it', async () => {
  const { kid: _, ...unnamed } = ed.key;
  const only = identifierOf({ keys: [unnamed] });
  assert.equal(await ask(only, await sign()), 'web ann');
  assert.equal(await ask(only, await sign({}, { kid: undefined as unknown as string })), 'web ann');
  const named = identifierOf({ keys: [ed.key] });
  assert.equal(
    await ask(named, await sign({}, { kid: undefined as unknown as string })),
    'web ann',
  );
  assert.equal(await ask(named, await sign({}, { kid: 'other' })), 'UNAUTHORIZED');
  const nameless = await sign({}, { kid: undefined as unknown as string });
  assert.equal(await ask(identifierOf(), nameless), 'UNAUTHORIZED');
});

test('an unknown key has the keys read again, once for all requests that wait, and not again for 10 s', async (t) => {
  let at = 0;
  t.mock.method(performance, 'now', () => at);
  let reads = 0;
  const later = createPair('EdDSA', 'later', generateKeyPairSync('ed25519'));
  const identifier: Identifier = identifierOf({
    rereadKeys: () => {
      reads += 1;
      identifier.replace(credentialsOf({ keys: [ed.key, later.key] }));
      return Promise.resolve();
    },
  });
  const [one, two] = await Promise.all([sign({}, {}, later), sign({ sub: 'bob' }, {}, later)]);
  const found = await Promise.all([ask(identifier, one), ask(identifier, two)]);
  assert.deepEqual([found, reads], [['web ann', 'web bob'], 1]);
  const unknown = await sign({}, { kid: 'never' });
  at = 9_999;
  assert.deepEqual([await ask(identifier, unknown), reads], ['UNAUTHORIZED', 1]);
  at = 10_000;
  assert.deepEqual([await ask(identifier, unknown), reads], ['UNAUTHORIZED', 2]);
});

test('what would be rejected anyway has no keys read again', async () => {
  const identifier = identifierOf({ rereadKeys: () => assert.fail('they are read again') });
  for (const [header, claims] of [
    [{ alg: 'none', kid: 'never' }, {}],
    [{ alg: 'EdDSA', kid: 'never' }, { aud: 'other' }],
    [{ alg: 'EdDSA', kid: 'never' }, { exp: 1 }],
    [{ alg: 'EdDSA', kid: 'never' }, { role: 'other' }],
    [{ alg: 'EdDSA', kid: 'never', crit: ['x'] }, {}],
    [{ alg: 'EdDSA' }, {}],
  ] as const) {
    assert.equal(await ask(identifier, forge(header, claims)), 'UNAUTHORIZED');
  }
});

test('tokens of a key or a client that is gone are rejected, known ones and those under verification too', async () => {
  const identifier = identifierOf();
  const [known, underWay] = await Promise.all([sign(), sign({ sub: 'bob' })]);
  assert.equal(await ask(identifier, known), 'web ann');
  const waiting = ask(identifier, underWay);
  identifier.replace(credentialsOf({ keys: [rsa.key, ec.key] }));
  assert.deepEqual([await waiting, await ask(identifier, known)], ['UNAUTHORIZED', 'UNAUTHORIZED']);
  identifier.replace(credentialsOf({}));
  assert.equal(await ask(identifier, known), 'web ann');
  identifier.replace(credentialsOf({ clients: [{ ...web, conditions: [] }] }));
  assert.equal(await ask(identifier, known), 'UNAUTHORIZED');
});

test('beside a thousand forged tokens a known one is accepted at once, and tokens beyond the bound are sent away', async () => {
  const identifier = identifierOf();
  const good = await sign();
  assert.equal(await ask(identifier, good), 'web ann');
  const forged = Array.from({ length: 1000 }, (_, number) =>
    identifier.identify(
      headersOf(forge({ alg: 'RS256', kid: 'rsa' }, { sub: `${number}` }, 'A'.repeat(342))),
      'bearer',
    ),
  );
  assert.ok(forged.every((one) => one instanceof Promise));
  // All of them are still under verification, or wait for it.
  const found = identifier.identify(headersOf(good), 'bearer');
  assert.ok(!(found instanceof Promise) && found.ok);
  const codes: string[] = [];
  const all = forged.map(async (one) => {
    const identified = await one;
    codes.push(identified.ok ? 'accepted' : identified.failure.code);
  });
  // No verification ends before these: only what is beyond the bounds is answered.
  for (let step = 0; step < 50; step += 1) await null;
  assert.deepEqual(codes, Array(1000 - 32 - 256).fill('AUTH_BUSY'));
  await Promise.all(all);
  // On a slow machine some of the others have waited for too long.
  assert.deepEqual(
    codes.filter((code) => code !== 'AUTH_BUSY' && code !== 'UNAUTHORIZED'),
    [],
  );
  assert.equal(await ask(identifier, await sign({ sub: 'new' })), 'web new');
});

test('of the known tokens those stay that are used', async () => {
  const { access } = credentialsOf({});
  const verifications = new BoundedWork({ maxRunning: 1, maxWaiting: 0, maxWaitMs: 0 });
  const tokens = new JsonWebTokens(access, names, verifications, 2);
  const judge = (token: string) => tokens.judge(token, token);
  const isKnown = (token: string) => !(judge(token) instanceof Promise);
  const [used, unused, next] = await Promise.all([
    sign(),
    sign({ sub: 'bob' }),
    sign({ sub: 'cat' }),
  ]);
  await judge(used);
  await judge(unused);
  assert.ok(isKnown(used));
  await judge(next);
  assert.deepEqual([isKnown(used), isKnown(next), isKnown(unused)], [true, true, false]);
});
