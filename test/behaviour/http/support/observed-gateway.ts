// One gateway for all tests of a file, behind a proxy that shows what reached MySQL; after each test it must be well.
// Must not know what the tests send.
import assert from 'node:assert/strict';
import { after, afterEach, before } from 'node:test';
import { type Database, startDatabase } from '../../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../../support/database/proxied-database.ts';
import { type Gateway, startGateway } from '../../../support/gateway.ts';

/** What the hooks have started; to be read inside of tests only. */
export type Observed = {
  readonly database: Database;
  readonly proxy: ProxiedDatabase;
  readonly gateway: Gateway;
};

/** Registers the hooks of a test file: one worker, which must be the same one, and answer, after each test. */
export function observeGateway(): () => Observed {
  let started: Partial<Observed> = {};
  let worker: number | undefined;
  const observed = () => started as Observed;
  before(async () => {
    const database = await startDatabase();
    started = { database };
    const proxy = await startProxiedDatabase(database);
    started = { database, proxy };
    const settings = { workers: 1, pool: 2 };
    const gateway = await startGateway({ database: proxy.target, settings });
    started = { database, proxy, gateway };
    [worker] = gateway.workers();
  });
  after(async () => {
    await started.gateway?.stop();
    await started.proxy?.stop();
    await started.database?.stop();
  });
  afterEach(async () => {
    const { gateway } = observed();
    assert.equal((await gateway.db({ SQL: 'select 1' })).status, 200);
    assert.deepEqual(gateway.workers(), [worker]);
  });
  return observed;
}
