// The command line of scripts/matrix.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCommand } from '../../../../scripts/compatibility/options.ts';

function cellsOf(...argv: string[]): string[] {
  const command = parseCommand(argv, 20);
  if (command.kind !== 'run') return assert.fail(JSON.stringify(command));
  return command.cells.map(({ product, node }) => `${product.name} ${node}`);
}

test('without options: every server on this Node, every Node on one server, nothing twice', () => {
  assert.deepEqual(cellsOf(), [
    'mariadb-10.11 20',
    'mariadb-11.8 20',
    'mysql-9.7 20',
    'mariadb-10.11 22',
    'mariadb-10.11 24',
    'mariadb-10.11 26',
  ]);
});

test('chosen servers run on this Node, chosen Nodes on one server, both on each other', () => {
  assert.deepEqual(cellsOf('--servers', 'mysql-9.7,mariadb-11.8'), [
    'mariadb-11.8 20',
    'mysql-9.7 20',
  ]);
  assert.deepEqual(cellsOf('--nodes', '22,24'), ['mariadb-10.11 22', 'mariadb-10.11 24']);
  assert.deepEqual(cellsOf('--servers', 'mysql-9.7', '--nodes', '24'), ['mysql-9.7 24']);
  assert.equal(new Set(cellsOf('--all')).size, 12);
});

test('words choose tests, in any position', () => {
  const command = parseCommand(['pipeline', '--nodes', '24', 'sessions'], 20);
  assert.deepEqual(command.kind === 'run' ? command.words : null, ['pipeline', 'sessions']);
});

test('an unknown name is a fault that lists the known ones', () => {
  for (const argv of [['--servers', 'mysql-8'], ['--nodes', '18'], ['--nodes', ''], ['--nope']]) {
    const command = parseCommand(argv, 20);
    assert.equal(command.kind, 'fault', argv.join(' '));
  }
  const command = parseCommand(['--servers', 'mysql-8'], 20);
  assert.match(command.kind === 'fault' ? command.message : '', /known: mariadb-10\.11, /);
  assert.equal(parseCommand(['--help'], 20).kind, 'help');
});
