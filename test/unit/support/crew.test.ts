// The basis of histories: an actor gets the same random numbers whatever others draw, and a history that hangs ends with its reason.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createActorRandom, makeHistory, several } from '../../support/histories/crew.ts';
import { layFaults } from '../../support/histories/line-faults.ts';

const quiet = { name: 'a history', seed: 7, say: () => {} };

test('an actor draws the same numbers with the same seed, and others than its neighbours', () => {
  const draw = (seed: number, name: string) => {
    const random = createActorRandom(seed, name);
    return Array.from({ length: 5 }, random).join();
  };
  assert.equal(draw(7, 'client 1'), draw(7, 'client 1'));
  assert.equal(new Set([draw(7, 'client 1'), draw(7, 'client 2'), draw(8, 'client 1')]).size, 3);
});

test('a history prints its seed before it starts anything', async () => {
  const said: string[] = [];
  const say = (line: string) => void said.push(line);
  await makeHistory({ ...quiet, say }, async () => assert.deepEqual(said, ['a history: seed 7']));
});

test('a history that does not end fails with its seed and the state of each actor, and stops what it started', async () => {
  let stops = 0;
  const never = new Promise<never>(() => {});
  const made = makeHistory({ ...quiet, maxMs: 20 }, async (crew) => {
    const stop = async () => {
      stops += 1;
    };
    await crew.start('a server', Promise.resolve({ stop }));
    await crew.work({
      ...several('client', 2, async ({ note }, number) => {
        note(`batch ${number}`);
        if (number === 2) await never;
      }),
    });
  });
  await assert.rejects(made, (error: Error) => {
    assert.match(error.message, /^a history, seed 7: has not ended within 20 ms\n/);
    assert.match(error.message, /client 2: batch 2/);
    assert.doesNotMatch(error.message, /client 1/);
    return true;
  });
  assert.equal(stops, 1);
});

test('an actor that fails has the others end', async () => {
  const made = makeHistory(quiet, async (crew) => {
    const failing = async () => Promise.reject(new Error('a fault'));
    const others = several('client', 2, async () => assert.equal(crew.isOver, false));
    await crew.work({ failing, ...others }).finally(() => assert.equal(crew.isOver, true));
  });
  await assert.rejects(made, /a fault/);
});

test('the faults at a place depend on the seed and on how many statements came before', () => {
  type Matcher = (statement: string) => boolean;
  const draw = (statements: readonly string[]) => {
    const rules: Matcher[] = [];
    const proxy = {
      on: (matches: RegExp | Matcher) => {
        rules.push(matches as Matcher);
        return { hits: () => 0, remove: () => {} };
      },
    };
    const place = {
      matches: (statement: string) => statement === 'COMMIT',
      percent: 50,
      scripted: new Map([[3, { kind: 'drop-reply' } as const]]),
    };
    layFaults(proxy, place, createActorRandom(7, 'COMMIT'));
    return statements.map((statement) => rules.findIndex((matches) => matches(statement)));
  };
  const commits = Array.from({ length: 20 }, () => 'COMMIT');
  const met = draw(commits);
  // The scripted one comes after all random ones.
  assert.equal(met[2], Math.max(...met));
  assert.ok(met.some((rule) => rule === -1));
  const mixed = draw(commits.flatMap((commit) => ['SELECT 1', commit]));
  assert.deepEqual(
    mixed.filter((_, at) => at % 2 === 1),
    met,
  );
  assert.ok(mixed.every((rule, at) => at % 2 === 1 || rule === -1));
});
