// User name and password of Basic authentication, as clients send them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseBasic } from '../../../../src/worker/request/credentials.ts';

const header = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

test('the first colon separates user and password', () => {
  assert.deepEqual(parseBasic(header('app:one:two')), { user: 'app', password: 'one:two' });
  assert.deepEqual(parseBasic(header('é:')), { user: 'é', password: '' });
  assert.deepEqual(parseBasic(header('app:x').replace('Basic', 'bASIC  ')), {
    user: 'app',
    password: 'x',
  });
});

test('a password that was taken out of a URL is decoded', () => {
  assert.equal(parseBasic(header('app:a%2Fb%3D%3D'))?.password, 'a/b==');
  assert.equal(parseBasic(header('app:100%'))?.password, '100%');
});

test('anything else is none', () => {
  for (const text of [undefined, '', 'Bearer abc', 'Basic', 'Basic *', header('no colon')]) {
    assert.equal(parseBasic(text), null, text);
  }
});
