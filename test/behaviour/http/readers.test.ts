// The promise that a request means the same to the gateway and to whatever stands before it: in mutated requests, the gateway accepts only
// what node's own server and haproxy read as the same request. scripts/soak http sends a million.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzHttp } from '../../../scripts/endurance/http/fuzz.ts';
import { startReaders } from '../../../scripts/endurance/http/readers.ts';
import { fuzzedSettings } from '../../../scripts/endurance/http.ts';
import { hasHaproxy } from '../../support/clusters/haproxy.ts';
import { cases, seed } from '../../support/property.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway } = useGateway(fuzzedSettings);
const requests = cases(2_000);

test(`${requests} mutated requests: what the gateway accepts is the same for other readers`, async (t) => {
  const withHaproxy = hasHaproxy();
  if (!withHaproxy) t.diagnostic('haproxy is not installed: only node reads them too');
  const workers = gateway.workers();
  const readers = await startReaders(withHaproxy);
  try {
    const plan = { port: gateway.port, readers, requests, seed: 1000 * seed };
    const { breaches, counts } = await fuzzHttp(plan);
    assert.equal(breaches.map(({ promise, example }) => `${promise}\n${example}`).join('\n'), '');
    assert.ok((counts.get('accepted') ?? 0) > requests / 2);
    assert.ok((counts.get('400') ?? 0) > requests / 2);
    assert.deepEqual(gateway.workers(), workers);
  } finally {
    await readers.stop();
  }
});
