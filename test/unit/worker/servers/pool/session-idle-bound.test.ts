// The variable by which each server bounds an idle transaction.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  boundIdling,
  boundTransactions,
  needsPings,
} from '../../../../../src/worker/servers/pool/session.ts';

const mariadb = (serverVersion: string) => ({ flavour: 'mariadb', serverVersion }) as const;
const mysql = { flavour: 'mysql', serverVersion: '9.7.0' } as const;

test('MariaDB has a bound for transactions; elsewhere idle sessions are bounded, and pinged', () => {
  for (const version of ['10.3.0-MariaDB', '5.5.5-10.11.6-MariaDB-log', '11.8.2-MariaDB']) {
    assert.match(boundTransactions(mariadb(version)), /^idle_transaction_timeout=/, version);
    assert.equal(needsPings(mariadb(version)), false);
  }
  for (const server of [mysql, mariadb('10.2.44-MariaDB'), mariadb('5.5.68-MariaDB')]) {
    assert.match(boundTransactions(server), /^wait_timeout=/);
    assert.equal(needsPings(server), true);
  }
});

test('a client’s transaction is bounded by more than it may be idle', () => {
  assert.match(boundIdling(mysql, 30_000), /=35$/);
  assert.match(boundIdling(mysql, 1_000), /=10$/);
});
