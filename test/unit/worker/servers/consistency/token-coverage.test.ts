// When the view of a server proves that it has what a client has seen.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSets } from '../../../../../src/shared/servers/gtid-sets.ts';
import {
  readMariadbPosition,
  readMysqlPosition,
} from '../../../../../src/shared/servers/position.ts';
import {
  covers,
  parseEvents,
  type SeenPosition,
} from '../../../../../src/worker/servers/consistency/token.ts';

const uuid = '3e11fa47-71ca-11e1-9e33-c80aa9429562';

test('MariaDB: each event needs the same server with the same number or a higher one', () => {
  const position = readMariadbPosition({
    binlogState: '0-1-10,0-2-12',
    binlogPos: '',
    slavePos: '1-1-3',
  });
  const has = (events: string) =>
    covers(position, { kind: 'mariadb', events: parseEvents(events) ?? new Map() });
  assert.deepEqual(['0-1-10', '0-1-9,1-1-3', '0-2-12'].map(has), [true, true, true]);
  assert.deepEqual(['0-1-11', '0-3-5', '0-1-9,1-1-4', '2-1-1'].map(has), [
    false,
    false,
    false,
    false,
  ]);
  assert.equal(covers(null, { kind: 'mariadb', events: new Map() }), false);
});

test('MySQL: transactions that were being committed must be there as well', () => {
  const position = readMysqlPosition(`${uuid}:1-9`);
  const seen = (executed: string, owned: string): SeenPosition => ({
    kind: 'mysql',
    executed: parseSets(executed) ?? new Map(),
    owned: parseSets(owned) ?? new Map(),
  });
  assert.equal(covers(position, seen(`${uuid}:1-8`, `${uuid}:9`)), true);
  assert.equal(covers(position, seen(`${uuid}:1-8`, `${uuid}:10`)), false);
  assert.equal(covers(position, seen(`${uuid}:1-10`, '')), false);
});

test('Galera: numbers count within one cluster', () => {
  const position = { kind: 'galera', cluster: uuid, committed: 7n } as const;
  assert.equal(covers(position, { ...position, committed: 7n }), true);
  assert.equal(covers(position, { ...position, committed: 8n }), false);
  assert.equal(
    covers(position, { ...position, cluster: `${uuid.slice(0, -1)}3`, committed: 1n }),
    false,
  );
  assert.equal(covers(position, { kind: 'mariadb', events: new Map() }), false);
});
