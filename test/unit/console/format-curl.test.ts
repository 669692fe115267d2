// The promise of "copy as curl": a shell gets the same body, and no token.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { formatCurl } from '../../../src/console/format.ts';

const argumentsOf = (command: string) => {
  const printed = command.replace(/^curl/, `printf '%s\\0'`);
  const env = { ...process.env, DBHTTPD_TOKEN: 'the shell knows' };
  return execFileSync('sh', ['-c', printed], { env }).toString().split('\0').slice(0, -1);
};

test('is read by a shell as it was meant', () => {
  const body = JSON.stringify({ sql: `select 'it''s', "$HOME", \`a\`, '\\', '\n'` });
  assert.deepEqual(
    argumentsOf(
      formatCurl({ origin: 'http://[::1]:9090', needsToken: true }, '/v1/query', body, "a 'key'"),
    ),
    [
      '-sS',
      'http://[::1]:9090/v1/query',
      '-H',
      'Content-Type: application/json',
      '-H',
      "Idempotency-Key: a 'key'",
      '-H',
      'Authorization: Bearer the shell knows',
      '--data-raw',
      body,
    ],
  );
});
