// The command line of the benchmark.
// Must not run anything.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseOptions } from '../../scripts/benchmark/options.ts';
import { targets } from '../../scripts/benchmark/targets.ts';

function optionsOf(...argv: string[]) {
  const command = parseOptions(argv);
  assert.equal(command.kind, 'run');
  return command.kind === 'run' ? command.options : assert.fail();
}

test('a full run takes five rounds', () => {
  assert.equal(optionsOf().rounds, 5);
});

test('a quick run takes every cell and peer that a target looks at', () => {
  const { cells, rounds } = optionsOf('--quick');
  assert.equal(rounds, 1);
  for (const { cell: id, against } of targets) {
    const cell = cells.find((candidate) => candidate.id === id);
    assert.ok(cell?.peers.includes('gateway'), id);
    if (against !== null) assert.ok(cell?.peers.includes(against), `${id} ${against}`);
  }
});

test('workloads and peers can be chosen', () => {
  const { cells } = optionsOf('--only', 'insert,join', '--peers', 'client,gateway');
  assert.deepEqual([...new Set(cells.map(({ workload }) => workload.name))], ['join', 'insert']);
  for (const { peers, load } of cells) assert.equal(peers.includes('client'), !load.close);
});

test('what is unknown is named', () => {
  for (const argv of [
    ['--only', 'nothing'],
    ['--peers', 'nginx'],
    ['--rounds', '0'],
    ['--fast'],
    ['x'],
  ]) {
    const command = parseOptions(argv);
    assert.equal(command.kind, 'fault', argv.join(' '));
  }
});

test('help is help', () => {
  assert.equal(parseOptions(['--help']).kind, 'help');
});
