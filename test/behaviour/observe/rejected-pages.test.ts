// The promise to operators whose web page is rejected: the log names its origin or Host, at most a few times a minute.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway } = useGateway({ workers: 1, allow_origins: 'https://app.example' });

const lines = () =>
  gateway
    .log()
    .split('\n')
    .filter((line) => /allow_origins|allow_hosts/.test(line));

test('the log names the origin and the Host that were rejected, escaped and a few times only', async () => {
  const ask = (headers: Readonly<Record<string, string>>) =>
    gateway.post('/v1/query', { sql: 'select 1' }, { headers });
  const own = { 'X-Request-ID': 'of-a-page', 'Sec-Fetch-Site': 'cross-site' };
  const refused = await ask({ ...own, Origin: 'http://app.example' });
  assert.equal(refused.status, 403);
  const [line] = await eventually('a line', () => (lines().length > 0 ? lines() : undefined));
  assert.match(
    String(line),
    /warn .* a request of a web page was rejected \(see allow_origins\) origin=http:\/\/app\.example host=\S+ site=cross-site endpoint=v1_query request=of-a-page$/,
  );

  assert.equal((await ask({ Host: 'db.example' })).status, 421);
  await ask({ Origin: `https://${'x'.repeat(5000)}` });
  await ask({ Origin: 'https://\u009b31m forged=1' });
  for (let more = 0; more < 20; more += 1) await ask({ Origin: `https://${more}.example` });
  await eventually('the last line of this minute', () => lines().length >= 5);
  assert.match(
    lines()[1] ?? '',
    /rejected for its Host \(see allow_hosts\) origin=- host=db\.example/,
  );
  assert.match(lines()[2] ?? '', /origin=https:\/\/x{92}… /);
  assert.match(lines()[3] ?? '', /origin="https:\/\/\S*\\u009b31m forged=1" /);
  assert.equal(lines().length, 5);
});
