// Callers by their tokens, without any, and with credentials that are not accepted.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { defaultCaller } from '../../../../src/shared/clients/caller.ts';
import { type Client, defaultClient } from '../../../../src/shared/clients/client.ts';
import { Identifier, type IdentifierParts } from '../../../../src/worker/request/identify.ts';

const parts: IdentifierParts = { names: null, rereadKeys: () => Promise.resolve() };
const digestOf = (token: string) => createHash('sha256').update(token).digest('hex');

function clientOf(name: string, changed: Partial<Client> = {}): Client {
  return { ...defaultClient, name, allow: ['sql'], ...changed };
}

const web = clientOf('web', { tokenDigests: [digestOf('web-one'), digestOf('web-two')] });
const report = clientOf('report', { tokenDigests: [digestOf('report-one')] });
const anonymous = clientOf('anonymous');

function identifierOf(tokens: readonly string[], clients: readonly Client[] | null, none = false) {
  const access =
    clients === null
      ? null
      : { clients: { clients, anonymous: none ? anonymous : null }, jwtKeys: [] };
  return new Identifier({ tokens, access }, parts);
}

/** The client's name, or the status. */
function ask(
  { identify }: Identifier,
  authorization?: string,
  scheme: 'bearer' | 'basic' = 'bearer',
): string | number {
  const found = identify(authorization === undefined ? {} : { authorization }, scheme);
  if (found instanceof Promise) return assert.fail('it is known at once');
  return found.ok ? found.caller.client.name : found.failure.status;
}

const basic = (password: string) => `Basic ${Buffer.from(`any:${password}`).toString('base64')}`;

test('without clients and tokens, every request is of the client default, whatever it sends', () => {
  const identifier = identifierOf([], null);
  for (const authorization of [undefined, '', 'Bearer x', 'Basic x', 'Digest x']) {
    const found = identifier.identify(
      authorization === undefined ? {} : { authorization },
      'bearer',
    );
    assert.deepEqual(found, { ok: true, caller: defaultCaller });
  }
});

test('without clients, a request needs one whole token of the section', () => {
  const identifier = identifierOf(['one', 'two'], null);
  for (const good of ['Bearer one', 'bearer two', 'BEARER   two ']) {
    assert.equal(ask(identifier, good), 'default', good);
  }
  for (const bad of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer three',
    'Bearer on',
    'Bearer one two',
    'one',
    'Basic one',
    'xBearer one',
    basic('one'),
  ]) {
    assert.equal(ask(identifier, bad), 401, bad);
  }
  assert.equal(ask(identifier, basic('two'), 'basic'), 'default');
  assert.equal(ask(identifier, 'Bearer two', 'basic'), 401);
});

test('without clients, each token has its own transactions, and all have the same keys', () => {
  const { identify } = identifierOf(['one', 'two'], null);
  const [one, two] = ['one', 'two'].map((token) => {
    const found = identify({ authorization: `Bearer ${token}` }, 'bearer');
    return found instanceof Promise || !found.ok ? assert.fail() : found.caller;
  });
  assert.notEqual(one?.transactionOwner, two?.transactionOwner);
  assert.deepEqual([one?.owner, two?.owner], [defaultCaller.owner, defaultCaller.owner]);
});

test('a token is that of its client, and the tokens of the section are those of default', () => {
  const identifier = identifierOf(['own'], [web, report]);
  for (const [token, name] of [
    ['web-one', 'web'],
    ['web-two', 'web'],
    ['report-one', 'report'],
    ['own', 'default'],
    ['other', 401],
    [digestOf('web-one'), 401],
  ] as const) {
    assert.equal(ask(identifier, `Bearer ${token}`), name, token);
    assert.equal(ask(identifier, basic(token), 'basic'), name, token);
  }
});

test('both tokens of a client have one caller, and so the same transactions', () => {
  const { identify } = identifierOf([], [web]);
  const [one, two] = ['web-one', 'web-two'].map((token) =>
    identify({ authorization: `Bearer ${token}` }, 'bearer'),
  );
  assert.ok(one !== undefined);
  assert.equal(one, two);
});

test('only a request without any credentials is anonymous', () => {
  assert.equal(ask(identifierOf([], [web])), 401);
  const identifier = identifierOf([], [web], true);
  assert.equal(ask(identifier), 'anonymous');
  assert.equal(ask(identifier, undefined, 'basic'), 'anonymous');
  for (const bad of [
    '',
    ' ',
    'Bearer',
    'Bearer x',
    'Basic x',
    'Digest x',
    'Negotiate',
    basic('x'),
  ]) {
    assert.equal(ask(identifier, bad), 401, bad);
  }
});

test('every rejection has the same text', () => {
  const expired = clientOf('old', { tokenDigests: [digestOf('old')], expiresAt: 1 });
  const { identify } = identifierOf(['own'], [web, expired]);
  const headers = [
    {},
    ...['Bearer x', 'Bearer', 'Digest x', 'Bearer old', 'Bearer web-on', 'Bearer a.b.c'].map(
      (authorization) => ({ authorization }),
    ),
  ];
  const texts = headers.map((one) => JSON.stringify(identify(one, 'bearer')));
  assert.equal(new Set(texts).size, 1, texts.join('\n'));
});

test('a client is rejected from its day on, also one that was accepted a moment ago', (t) => {
  const day = Date.parse('2027-01-01');
  t.mock.timers.enable({ apis: ['Date'], now: day - 1 });
  const token = { tokenDigests: [digestOf('web-one')], expiresAt: day };
  const identifier = new Identifier(
    {
      tokens: [],
      access: {
        clients: {
          clients: [clientOf('web', token)],
          anonymous: { ...anonymous, expiresAt: day },
        },
        jwtKeys: [],
      },
    },
    parts,
  );
  assert.deepEqual([ask(identifier, 'Bearer web-one'), ask(identifier)], ['web', 'anonymous']);
  t.mock.timers.setTime(day);
  assert.deepEqual([ask(identifier, 'Bearer web-one'), ask(identifier)], [401, 401]);
});

test('a token that was taken away is rejected from then on, and the one in its place is accepted', () => {
  const identifier = identifierOf(['old', 'kept'], [web]);
  identifier.replace({
    tokens: ['kept', 'new'],
    access: { clients: { clients: [report], anonymous: null }, jwtKeys: [] },
  });
  for (const [token, name] of [
    ['old', 401],
    ['kept', 'default'],
    ['new', 'default'],
    ['web-one', 401],
    ['report-one', 'report'],
  ] as const) {
    assert.equal(ask(identifier, `Bearer ${token}`), name, token);
  }
});
