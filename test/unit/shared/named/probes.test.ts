// The texts by which a server is asked about a statement: every choice once, values as a call writes them, and NULL where it is allowed.
import assert from 'node:assert/strict';
import test from 'node:test';
import { parseFile } from '../../../../src/shared/named/parse-file.ts';
import { listProbes } from '../../../../src/shared/named/probes.ts';
import type { EnumValues } from '../../../../src/shared/named/scalar.ts';

const colours = () => new Set(['red', 'green']);

function probesOf(params: readonly string[], sql: string, enumValues: EnumValues = colours) {
  const head = ['-- name: a :many', '-- for: *', ...params.map((line) => `-- param ${line}`)];
  const parsed = parseFile([...head, `${sql};`].join('\n'), 'a.sql', { hasIdempotencyTable: true });
  assert.ok(parsed.ok, JSON.stringify(parsed));
  const [statement] = parsed.statements;
  const [part] = statement?.parts ?? [];
  assert.ok(statement !== undefined && part !== undefined);
  return listProbes(part, statement.parameters, enumValues);
}

test('a statement without parameters is asked about once', () => {
  assert.deepEqual(probesOf([], 'select 1 a'), [
    { choices: '', marked: 'select 1 a', texts: ['select 1 a'] },
  ]);
});

test('each choice is in one text, by its label', () => {
  const params = ['s: choice(up: id | down: id desc)', 'c: choice(a: x | b: y)'];
  const probes = probesOf(params, 'select :c from t order by :s');
  assert.deepEqual(
    probes.map(({ choices }) => choices),
    ['c: a, s: up', 'c: a, s: down', 'c: b, s: up', 'c: b, s: down'],
  );
  assert.equal(probes[1]?.marked, 'select  x  from t order by  id desc ');
});

test('numbers have their bounds, and nullable parameters are NULL once', () => {
  const [probe] = probesOf(
    ['n: int(-5..9)', 'd: decimal(4,1) = null'],
    'select a-:n from t where d = :d',
  );
  assert.equal(probe?.marked, 'select a-(?) from t where d = ?');
  assert.deepEqual(probe?.texts, [
    'select a-(-5) from t where d = 0.0',
    'select a-(9) from t where d = 999.9',
    'select a-(-5) from t where d = NULL',
  ]);
});

test('every type has a literal, and the values of a column are its own', () => {
  const params = [
    'i: int(..-3)',
    'f: float',
    'b: bool',
    't: text(/x+/, 3)',
    'd: date',
    'm: datetime',
    'o: time',
    'j: json',
    'y: bytes',
    'u: uuid',
    'e: enum(p, q)',
    'c: enum of t.colour',
    'l: list(enum of t.colour; 3)',
    'r: records(a: int; 3)',
  ];
  const names = params.map((param) => param.split(':')[0]);
  const places = names.map((name) => (name === 'l' ? 'x in (:l)' : `:${name}`)).join(', ');
  const [probe] = probesOf(params, `select ${places}`);
  const hex = (text: string) => `_utf8mb4 X'${Buffer.from(text).toString('hex')}'`;
  const first = probe?.texts[0] ?? '';
  assert.ok(first.startsWith(`select -3, 0e0, TRUE, ${hex('a')}, ${hex('2000-01-01')}, `), first);
  assert.ok(
    first.endsWith(`${hex('p')}, ${hex('red')}, x in (${hex('red')}), ${hex('[]')}`),
    first,
  );
});

test('a column whose values are not known is asked about all the same', () => {
  const [probe] = probesOf(['c: enum of t.colour'], 'select :c', () => null);
  assert.equal(probe?.texts.length, 1);
});
