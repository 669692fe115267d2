// The accounts of a worker follow the clients file: limits hold at once, and removed clients are forgotten when nothing of them runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Client, defaultClient } from '../../../../src/shared/clients/client.ts';
import { Accounts } from '../../../../src/worker/servers/account.ts';

const client = (name: string, more: Partial<Client> = {}): Client => ({
  ...defaultClient,
  name,
  ...more,
});
const namesOf = (accounts: Accounts) => accounts.observations(0).map(({ client: name }) => name);

test('each client in force has an account before its first request', () => {
  const accounts = new Accounts([client('web'), client('report')]);
  assert.deepEqual(namesOf(accounts), ['web', 'report']);
  assert.equal(accounts.of(client('web')), accounts.of(client('web')));
  assert.deepEqual(namesOf(accounts), ['web', 'report']);
});

test('a removed client is forgotten when nothing of it runs or waits', () => {
  const accounts = new Accounts([client('idle'), client('runs'), client('waits'), defaultClient]);
  const [runs, waits] = [accounts.of(client('runs')), accounts.of(client('waits'))];
  runs.enter();
  waits.waiting += 1;
  accounts.replace([client('web'), defaultClient]);
  accounts.sweep();
  assert.deepEqual(namesOf(accounts).toSorted(), ['default', 'runs', 'waits', 'web']);
  runs.leave();
  waits.waiting -= 1;
  accounts.sweep();
  assert.deepEqual(namesOf(accounts).toSorted(), ['default', 'web']);
  // The account of `default` comes back as the same one.
  const own = accounts.of(defaultClient);
  accounts.replace([]);
  accounts.sweep();
  accounts.replace([defaultClient]);
  assert.equal(accounts.of(defaultClient), own);
  assert.ok(accounts.has('default'));
});

test('a limit that is raised lets a waiting request run at once', () => {
  const accounts = new Accounts([client('web', { maxInFlight: 1 })]);
  const account = accounts.of(client('web', { maxInFlight: 1 }));
  let woken = 0;
  account.onRoom(() => {
    woken += 1;
  });
  account.enter();
  account.waiting += 1;
  accounts.replace([client('web', { maxInFlight: 1 })]);
  assert.equal(woken, 0);
  accounts.replace([client('web', { maxInFlight: 2 })]);
  assert.deepEqual([woken, account.room], [1, 1]);
  // A request that was received before knows the former limit, which counts no more.
  assert.equal(accounts.of(client('web', { maxInFlight: 1 })).room, 1);
  accounts.replace([client('web')]);
  assert.deepEqual([woken, account.room], [2, Number.POSITIVE_INFINITY]);
});
