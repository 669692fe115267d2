// An order of `--primary` makes all its changes or none, and no other line changes anything.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sections } from '../../../../src/shared/config/config.ts';
import { overridePrimary } from '../../../../src/shared/servers/primary-memory.ts';
import {
  formatOrder,
  obeyOrder,
  type PrimaryChange,
  parseOrderResult,
} from '../../../../src/supervisor/primary/primary-order.ts';

const one = (host: string) => ({ host, port: 3306, socket: null });
const sections = [
  { section: 'world', candidates: [one('a'), one('b')] },
  { section: 'moon', candidates: [one('a')] },
] as unknown as Sections;
const change = (section: string, host: string): PrimaryChange => ({
  section,
  primary: {
    address: `${host}:3306`,
    identity: `${host}:3306/1`,
    number: '1',
    startedAt: 1,
    position: null,
  },
});

/** The result of an order, and the sections that it changed. */
async function obey(order: string) {
  const changed: string[] = [];
  const answer = await obeyOrder(order, sections, async (section, primary) => {
    changed.push(section);
    return { before: null, memory: overridePrimary(null, primary), isSaved: true };
  });
  return { result: parseOrderResult(answer ?? ''), changed };
}

test('an order is carried out, and its answer has the state before', async () => {
  const { result, changed } = await obey(formatOrder([change('world', 'b')]));
  const results = [{ section: 'world', before: null, isSaved: true }];
  assert.deepEqual([result, changed], [{ kind: 'set', results }, ['world']]);
});

test('one change that cannot be made refuses the whole order', async () => {
  for (const other of [change('world', 'c'), change('moon', 'a'), change('sun', 'a')]) {
    const { result, changed } = await obey(formatOrder([change('world', 'a'), other]));
    assert.deepEqual([result?.kind, changed], ['refused', []]);
  }
});

test('a line that is no order changes nothing', async () => {
  const lines = [
    '',
    'primary',
    'null',
    '{}',
    '{"primary":1}',
    '{"primary":[null]}',
    '{"primary":[{}]}',
  ];
  for (const line of lines) {
    const { result, changed } = await obey(line);
    assert.deepEqual([result?.kind, changed], ['refused', []], line);
  }
});

test('an instance that is ending does not answer, and one that fails reports why', async () => {
  const order = formatOrder([change('world', 'a')]);
  assert.equal(await obeyOrder(order, sections, async () => null), null);
  const failing = await obeyOrder(order, sections, () =>
    Promise.reject(new Error('no next memory')),
  );
  const problem = 'no next memory';
  assert.deepEqual(parseOrderResult(failing ?? ''), { kind: 'refused', problem });
  for (const text of ['', 'running', 'null', '{"kind":"other"}']) {
    assert.equal(parseOrderResult(text), null);
  }
});
