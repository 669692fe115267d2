// The command line of the benchmark.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listCells } from '../../../../scripts/benchmark/cells.ts';
import { parseOptions } from '../../../../scripts/benchmark/options.ts';
import { targets } from '../../../../scripts/benchmark/targets.ts';

function optionsOf(...argv: string[]) {
  const command = parseOptions(argv);
  assert.equal(command.kind, 'run');
  return command.kind === 'run' ? command.options : assert.fail();
}

test('a full run takes five rounds', () => {
  assert.equal(optionsOf().rounds, 5);
});

test('a quick run takes every cell, peer and gauge that a target looks at', () => {
  const { cells, gauges, rounds } = optionsOf('--quick');
  assert.equal(rounds, 1);
  const sources = targets.flatMap(({ source, beside }) =>
    beside === null ? [source] : [source, beside.source],
  );
  for (const source of sources) {
    if (source.kind === 'gauge') {
      assert.ok(gauges.some(({ id }) => id === source.gauge));
      continue;
    }
    const cell = cells.find(({ id }) => id === source.cell);
    assert.ok(cell?.peers.includes(source.of), `${source.cell} ${source.of}`);
    if (source.to !== null) {
      assert.ok(cell?.peers.includes(source.to), `${source.cell} ${source.to}`);
    }
  }
});

test('every cell that is measured longer is one that a target looks at', () => {
  const looked = targets.flatMap(({ source }) => (source.kind === 'gauge' ? [] : [source.cell]));
  for (const { id, decides } of listCells()) assert.equal(decides, looked.includes(id), id);
});

test('curves can be chosen', () => {
  const command = parseOptions(['scale', '--only', 'cell,rows', '--quick']);
  assert.equal(command.kind, 'scale');
  if (command.kind !== 'scale') return;
  const { curves, rounds } = command.options;
  assert.deepEqual([curves.map(({ name }) => name), rounds], [['rows', 'cell'], 1]);
});

test('memory is measured in three rounds, unless another number is given', () => {
  const roundsOf = (...argv: string[]) => {
    const command = parseOptions(['memory', ...argv]);
    return command.kind === 'memory' ? command.options.rounds : command.kind;
  };
  assert.equal(roundsOf(), 3);
  assert.equal(roundsOf('--rounds', '5'), 5);
  assert.equal(roundsOf('--rounds', 'none'), 'fault');
});

test('workloads and peers can be chosen', () => {
  const { cells, gauges } = optionsOf('--only', 'insert,join', '--peers', 'client,gateway');
  assert.deepEqual([...new Set(cells.map(({ workload }) => workload.name))], ['join', 'insert']);
  for (const { peers, load } of cells) assert.equal(peers.includes('client'), !load.close);
  assert.deepEqual(gauges, []);
  assert.equal(optionsOf('--only', 'idle').gauges.length, 1);
});

test('an earlier build is measured beside ours in the cells that decide', () => {
  const { before, cells, gauges } = optionsOf('--before', '/srv/earlier', '--only', 'point,bulk');
  assert.equal(before, '/srv/earlier');
  assert.ok(cells.every(({ decides }) => decides));
  for (const { peers } of cells) assert.deepEqual(peers, ['gateway', 'gateway-before']);
  assert.deepEqual(gauges, []);
  assert.equal(optionsOf().before, null);
});

test('an unknown word is named', () => {
  for (const argv of [
    ['--only', 'nothing'],
    ['--peers', 'nginx'],
    ['--peers', 'gateway-before'],
    ['--rounds', '0'],
    ['--fast'],
    ['x'],
    ['scale', '--only', 'point'],
    ['scale', '--seconds', '1'],
  ]) {
    const command = parseOptions(argv);
    assert.equal(command.kind, 'fault', argv.join(' '));
  }
});

test('help is help', () => {
  assert.equal(parseOptions(['--help']).kind, 'help');
});
