// The named statements of scripts/demo: --check finds nothing wrong with them on the demo's own tables, with the rights of its account.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namedDirectory } from '../../../scripts/demonstration/gateway.ts';
import { createPlayground, idempotencyTable } from '../../../scripts/demonstration/playground.ts';
import { createAccount, createWorld } from '../../../scripts/world/schema.ts';
import { daemonFor } from '../../support/daemon.ts';
import { ownServerOnly } from '../../support/database/mariadb.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase({ serverArguments: [] });

test("--check accepts the demo's named statements", async (t) => {
  if (!ownServerOnly(t)) return;
  if (database.flavour !== 'mariadb') return t.skip('the demo has a MariaDB');
  await database.query(createWorld + createAccount('app', 'secret') + createPlayground('app'));
  const daemon = daemonFor(t);
  daemon.configure({
    ...{ database: 'world', host: '127.0.0.1', port: String(database.port) },
    ...{ user: 'app', password: 'secret' },
    idempotency_table: idempotencyTable,
    named: namedDirectory,
  });
  const { status, stdout, stderr } = await daemon.run(['--check']);
  assert.equal(stderr, '');
  assert.equal(status, 0);
  for (const name of ['clock_changes', 'country', 'places', 'record_visit']) {
    assert.match(stdout, new RegExp(`^ {2}${name} `, 'm'));
  }
  assert.doesNotMatch(stdout, /not known/);
});
