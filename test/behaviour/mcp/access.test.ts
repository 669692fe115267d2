// The guards of /mcp: Host, Origin and token are checked as everywhere, and clients without a token find nothing where they look for one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useGateway } from '../../support/use-gateway.ts';
import { headersOf, messageOf, payloadOf } from './support/agent.ts';

const token = 'a-token-of-the-tests';
const { gateway } = useGateway({ workers: 1, mcp: 'on', token, url: 'https://db.example' });

const send = (headers: Readonly<Record<string, string>>) =>
  gateway.post('/mcp', messageOf('2025-11-25', 'tools/list'), {
    headers: { ...headersOf('2025-11-25', 'tools/list'), ...headers },
  });
const authorized = { Authorization: `Bearer ${token}` };

test('a token is needed', async () => {
  assert.equal((await send(authorized)).status, 200);
  for (const headers of [{}, { Authorization: 'Bearer other' }]) {
    const reply = await send(headers);
    assert.equal(reply.status, 401);
    assert.match(String(reply.headers['www-authenticate']), /^Bearer/);
    const { error } = payloadOf(reply) as { error: { data: { code: string } } };
    assert.equal(error.data.code, 'UNAUTHORIZED');
  }
});

test('no web page reaches it, and no unknown Host', async () => {
  const refused: readonly (readonly [Readonly<Record<string, string>>, number])[] = [
    [{ Origin: 'http://evil.example' }, 403],
    [{ Origin: 'null' }, 403],
    [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
    [{ Host: 'rebound.evil.example' }, 421],
  ];
  for (const [headers, status] of refused) {
    assert.equal((await send({ ...authorized, ...headers })).status, status);
  }
});

test('where tokens are static, every path below /.well-known/ is 404 in JSON, without credentials', async () => {
  for (const path of [
    'oauth-protected-resource',
    'oauth-protected-resource/mcp',
    'oauth-authorization-server',
    'openid-configuration',
    'a/b/c',
  ]) {
    const reply = await gateway.get(`/.well-known/${path}`);
    assert.equal(reply.status, 404, path);
    assert.equal(reply.json<{ CODE: string }>().CODE, 'NOT_FOUND');
  }
  const rebound = await gateway.get('/.well-known/x', { headers: { Host: 'evil.example' } });
  assert.equal(rebound.status, 421);
});
