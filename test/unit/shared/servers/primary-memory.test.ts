// A memory of the primary survives being written and read, and no other text is taken for one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  formatPrimaryMemory,
  overridePrimary,
  type PrimaryMemory,
  parsePrimaryMemory,
} from '../../../../src/shared/servers/primary-memory.ts';

const source = { number: '1', uuid: null, address: '10.0.0.1:3306' };
const memory: PrimaryMemory = {
  version: 7,
  term: 2,
  primary: {
    address: '10.0.0.1:3306',
    identity: '10.0.0.1:3306/1',
    number: '1',
    startedAt: 1_700_000_000,
    taken: '0-1-10',
    position: '0-1-12,0-2-4',
  },
  replicas: [
    { identity: '10.0.0.2:3306/2', follows: source, term: 2 },
    { identity: '10.0.0.3:3306/3', follows: { ...source, number: null }, term: null },
  ],
  former: ['10.0.0.4:3306/4'],
};
const uuid = 'aaaaaaaa-1111-1111-1111-bbbbbbbbbbbb';

test('a memory is read as it was written', () => {
  assert.deepEqual(parsePrimaryMemory(formatPrimaryMemory(memory)), memory);
  const { primary } = memory;
  const mysql = {
    ...memory,
    primary: { ...primary, identity: uuid, taken: null, position: `${uuid}:1-5:7` },
    replicas: [],
    former: [],
  };
  assert.deepEqual(parsePrimaryMemory(formatPrimaryMemory(mysql)), mysql);
});

test('any other text is rejected', () => {
  const { primary, replicas } = memory;
  const [one, two] = replicas;
  const odd: readonly unknown[] = [
    null,
    [],
    'text',
    {},
    { ...memory, version: 0 },
    { ...memory, term: 1.5 },
    { ...memory, more: 1 },
    { ...memory, primary: null },
    { ...memory, primary: { ...primary, identity: '' } },
    { ...memory, primary: { ...primary, number: 1 } },
    { ...memory, primary: { ...primary, startedAt: '1' } },
    { ...memory, primary: { ...primary, position: 'no position' } },
    { ...memory, primary: { ...primary, taken: '' } },
    { ...memory, replicas: [two, one] },
    { ...memory, replicas: [one, one] },
    { ...memory, replicas: [{ ...one, term: 3 }] },
    { ...memory, replicas: [{ ...one, identity: primary.identity }] },
    { ...memory, replicas: [{ ...one, follows: null }] },
    { ...memory, replicas: [{ ...one, follows: { ...source, number: 'x' } }] },
    { ...memory, replicas: {} },
    { ...memory, former: [3] },
    { ...memory, former: [primary.identity] },
  ];
  for (const value of odd) {
    assert.equal(parsePrimaryMemory(JSON.stringify(value)), null, JSON.stringify(value));
  }
  const text = formatPrimaryMemory(memory);
  for (const broken of ['', text.slice(0, -5), `${text}}`, `\0${text}`]) {
    assert.equal(parsePrimaryMemory(broken), null);
  }
});

test('a primary that the operator names begins a new term, and the one before it becomes a former primary', () => {
  const { taken: _taken, ...named } = {
    ...memory.primary,
    identity: '10.0.0.4:3306/4',
    position: '0-4-1',
  };
  const next = overridePrimary(memory, named);
  assert.deepEqual(next, {
    version: 8,
    term: 3,
    primary: { ...named, taken: '0-4-1' },
    replicas: [],
    former: [memory.primary.identity],
  });
  assert.deepEqual(parsePrimaryMemory(formatPrimaryMemory(next)), next);
  const first = overridePrimary(null, named);
  assert.deepEqual([first.version, first.term, first.former], [1, 1, []]);
});
