// The documents from which clients learn who issues tokens for /mcp (RFC 9728).
import assert from 'node:assert/strict';
import test from 'node:test';
import { describeResource } from '../../../../src/worker/endpoints/well-known.ts';

test('names the issuer, for the gateway and for the path, each as its own resource', () => {
  const described = describeResource('https://db.example', 'https://login.example/realm', '/mcp');
  assert.deepEqual(
    described?.documents.map(({ path, json }) => {
      const { resource, authorization_servers } = JSON.parse(json) as Record<string, unknown>;
      return [path, resource, authorization_servers];
    }),
    [
      [
        '/.well-known/oauth-protected-resource',
        'https://db.example',
        ['https://login.example/realm'],
      ],
      [
        '/.well-known/oauth-protected-resource/mcp',
        'https://db.example/mcp',
        ['https://login.example/realm'],
      ],
    ],
  );
  assert.equal(
    described?.challenge,
    'Bearer resource_metadata="https://db.example/.well-known/oauth-protected-resource/mcp"',
  );
});

test('says nothing without an origin, without an issuer, or if the issuer is no URL', () => {
  assert.equal(describeResource(null, 'https://login.example', '/mcp'), null);
  assert.equal(describeResource('https://db.example', null, '/mcp'), null);
  assert.equal(describeResource('https://db.example', 'our-issuer', '/mcp'), null);
});
