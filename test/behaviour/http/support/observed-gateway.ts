// One gateway for all tests of a file, behind a proxy that shows what reached MySQL; after each test it must be well.
import assert from 'node:assert/strict';
import { afterEach, beforeEach } from 'node:test';
import { useProxiedGateway } from '../../../support/use-gateway.ts';

/** Registers the hooks of a test file: one worker, which must be the same one, and answer, after each test. */
export function observeGateway(): ReturnType<typeof useProxiedGateway> {
  const observed = useProxiedGateway({ workers: 1, pool: 2 });
  const { gateway } = observed;
  let worker: number | undefined;
  // No `before`: at the top of a file it would not wait for the one that starts the gateway.
  beforeEach(() => {
    worker ??= gateway.workers()[0];
  });
  afterEach(async () => {
    assert.equal((await gateway.db({ SQL: 'select 1' })).status, 200);
    assert.deepEqual(gateway.workers(), [worker]);
  });
  return observed;
}
