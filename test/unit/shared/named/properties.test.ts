// Properties of named statements under random inputs: printed and parsed again they are the same, and no text breaks the parser.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { checkCall, prepareStatement, writeCall } from '../../../../src/shared/named/call.ts';
import { schemaOfParameters } from '../../../../src/shared/named/parameter-schema.ts';
import { parseFile } from '../../../../src/shared/named/parse-file.ts';
import type { NamedStatement } from '../../../../src/shared/named/statement.ts';
import { allAtOnce } from '../../../../src/shared/pieces.ts';
import { analyse } from '../../../../src/shared/sql/analyse.ts';
import { bind } from '../../../../src/shared/sql/bind.ts';
import { builtInEverywhere } from '../../../../src/shared/sql/vocabulary.ts';
import { printStatement, scalarSamples } from '../../../support/named-text.ts';
import { anyCharacter, fc } from '../../../support/property.ts';

const section = { hasIdempotencyTable: true };

function parsed(text: string): readonly NamedStatement[] {
  const file = parseFile(text, 'a.sql', section);
  assert.ok(file.ok, `${text}\n${JSON.stringify(file)}`);
  return file.statements;
}

/** Without the lines, which printing changes. */
function withoutLines(statements: readonly NamedStatement[]): unknown {
  return JSON.parse(JSON.stringify(statements, (key, value) => (key === 'line' ? 0 : value)));
}

const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/).map((text) => `n_${text}`);
const word = fc.stringMatching(/^[A-Za-z0-9_-]{1,8}$/).filter((text) => text !== 'null');
const prose = fc.stringMatching(/^[A-Z][a-z ,.]{0,20}[a-z.]$/);
const bound = fc.integer({ min: -99, max: 99 });
const range = fc.tuple(fc.option(bound), fc.option(bound)).map(([one, other]) => {
  if (one === null && other === null) return '';
  const [low, high] = one !== null && other !== null && one > other ? [other, one] : [one, other];
  return `${low ?? ''}..${high ?? ''}`;
});
const inBrackets = (kind: string, text: string) => (text === '' ? kind : `${kind}(${text})`);
const scalar = fc.oneof(
  range.map((text) => inBrackets('int', text)),
  range.map((text) => inBrackets('float', text)),
  range.map((text) => `decimal(9,3${text === '' ? '' : `; ${text}`})`),
  fc.constantFrom('bool', 'json', 'bytes', 'uuid', 'date', 'datetime', 'time', 'enum of t.c'),
  fc.constantFrom("date('2020-01-01'..)", "time(..'10:00')", 'text(/[a-z]+\\/(, )?/, 9)'),
  fc.integer({ min: 1, max: 999 }).map((length) => `text(${length})`),
  fc.uniqueArray(word, { minLength: 1, maxLength: 4 }).map((words) => `enum(${words.join(', ')})`),
);
const choiceSql = fc.constantFrom(
  'id',
  'id desc, 2',
  "concat('|)', x)",
  '(a | b)',
  "'it''s'",
  '-1',
);
const claims = fc.constantFrom('', ' = null', " = claims.a.'B c'''");
/** A type with its default, and the SQL that uses the parameter. */
const parameter = fc.oneof(
  fc
    .tuple(scalar, claims)
    .map(([type, end]) => ({ text: `${type}${end}`, use: (one: string) => `:${one}` })),
  fc.tuple(scalar, fc.integer({ min: 1, max: 99 }), claims).map(([type, count, end]) => ({
    text: `list(${type}; ${count})${end}`,
    use: (one: string) => `1 in (:${one})`,
  })),
  fc
    .tuple(fc.uniqueArray(name, { minLength: 1, maxLength: 3 }), scalar, claims)
    .map(([names, type, end]) => ({
      text: `records(${names.map((one) => `${one}: ${type}`).join(', ')}; 5)${end}`,
      use: (one: string) => `:${one}`,
    })),
  fc
    .tuple(fc.uniqueArray(word, { minLength: 1, maxLength: 3 }), choiceSql)
    .map(([labels, sql]) => ({
      text: `choice(${labels.map((label) => `${label}: ${sql}`).join(' | ')}) = ${labels[0]}`,
      use: (one: string) => `:${one}`,
    })),
);
const statement = fc
  .record({
    title: name,
    description: fc.array(prose, { maxLength: 3 }),
    clients: fc.uniqueArray(fc.stringMatching(/^[a-z0-9_-]{1,9}$/), { maxLength: 3 }),
    parameters: fc.dictionary(name, parameter, { maxKeys: 4 }),
    isBatch: fc.boolean(),
  })
  .map(({ title, description, clients, parameters, isBatch }) => {
    const all = Object.entries(parameters);
    const uses = all.map(([one, { use }]) => use(one));
    const sql = `select /* :no */ '${':'}no', ${['1', ...uses].join(', ')}`;
    return [
      `-- name: ${title} :${isBatch ? 'batch' : 'many'}`,
      ...description.map((line) => `-- ${line}`),
      `-- for: ${clients.length === 0 ? '*' : clients.join(', ')}`,
      ...all.map(([one, { text }]) => `-- param ${one}: ${text}`),
      ...(isBatch ? ['-- error GONE: 409 It is gone.', '-- error 1062: 422 TWICE'] : []),
      ...(isBatch ? ['-- step: one', '-- expect: row_count = 1..7 else GONE'] : []),
      `${sql};`,
      ...(isBatch ? ['-- answer', 'select 1;', 'update t set a = 1;'] : []),
    ].join('\n');
  });

test('a statement that is printed and parsed again is the same', () => {
  fc.assert(
    fc.property(statement, (text) => {
      const statements = parsed(text);
      const printed = statements.map(printStatement).join('\n');
      assert.deepEqual(withoutLines(parsed(printed)), withoutLines(statements), printed);
    }),
    { numRuns: 300 },
  );
});

test('every text is either statements or faults, each with a line of the text', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '\n',
      '-- name: a :many\n',
      '-- name: b :batch\n',
      '-- for: *\n',
      '-- param x: int\n',
      '-- param y: choice(a: 1 | b: ',
      '-- param z: text(/',
      '-- answer\n',
      '-- expect: ',
      'select ',
      ':x',
      ':',
      ';',
      "'",
      '"',
      '`',
      '/*',
      '*/',
      '(',
      ')',
      '\\',
      '--',
    ),
    fc.string({ unit: anyCharacter, maxLength: 5 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const text = pieces.join('');
      const file = parseFile(text, 'a.sql', section);
      const last = text.split('\n').length;
      if (file.ok) return;
      assert.ok(file.faults.length > 0);
      for (const { line } of file.faults) assert.ok(line !== null && line >= 1 && line <= last);
    }),
    { numRuns: 500 },
  );
});

test('the schema of the parameters accepts what a call accepts', () => {
  const samples = scalarSamples(fc.string({ unit: anyCharacter, maxLength: 40 }));
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, validateFormats: false });
  for (const { type, values } of samples) {
    const [one] = parsed(
      `-- name: a :many\n-- for: *\n-- param x: ${type}\n-- param y: list(${type}; 2) = null\n-- param z: records(a: ${type}; 2) = null\n-- param c: int = claims.c\nselect :x, :z, :c where 1 in (:y);`,
    );
    assert.ok(one !== undefined);
    const callable = prepareStatement(one, () => null);
    const validate = ajv.compile(schemaOfParameters(one, () => null));
    const accepts = (params: Record<string, unknown>) =>
      allAtOnce(checkCall(callable, { kind: 'json', params }, { c: 1 })).ok;
    fc.assert(
      fc.property(values, ({ json }) => {
        const isLong = /^-?\d{16,}$/.test(json);
        const value: unknown = isLong ? json : JSON.parse(json);
        for (const params of [{ x: value }, { x: value, y: [value], z: [{ a: value }] }]) {
          assert.ok(accepts(params), `${type}: ${json}`);
          assert.ok(validate(params), `${type}: ${json} ${JSON.stringify(validate.errors)}`);
        }
      }),
      { numRuns: 30 },
    );
    for (const params of [
      {},
      { x: null },
      { x: {} },
      { x: [] },
      { q: 1 },
      { x: '', c: 1 },
      { y: [] },
    ]) {
      assert.equal(validate(params), false, `${type}: ${JSON.stringify(params)}`);
      assert.equal(accepts(params), false, `${type}: ${JSON.stringify(params)}`);
    }
  }
});

test('a call writes what binding the same values writes, and knows its analysis', () => {
  const plenty = 1_000_000;
  const around = fc.constantFrom(
    ' ',
    ',',
    '(1)',
    "'it''s :i'",
    '`a`',
    '/* :s */',
    '-- :i\n',
    '# :l\n',
    '+',
    '-',
    '5-',
    '*2',
    ' collate binary ',
    ' in (:l) ',
    ' and ',
    '@a:=',
    ' f(',
    ')',
  );
  const piece = fc.oneof(around, fc.constantFrom(':i', ':s', ':d', ' :i ', ' :s '));
  let written = 0;
  fc.assert(
    fc.property(
      fc.array(piece, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: -9, max: 9 }),
      fc.string({ unit: anyCharacter, maxLength: 3 }),
      (pieces, i, s) => {
        const sql = `select :i, :s, :d, 1 in (:l) ${pieces.join('')}`;
        const file = parseFile(
          `-- name: a :many\n-- for: *\n-- param i: int\n-- param s: text(3)\n-- param d: date\n-- param l: list(int; 9)\n${sql}\n;`,
          'a.sql',
          section,
        );
        const [one] = file.ok ? file.statements : [];
        const [part] = one?.parts ?? [];
        // The gateway's lexer knows no placeholder directly behind a quote.
        if (one === undefined || part === undefined || /['`]:/.test(sql)) return;
        written += 1;
        const params = { i, s, d: '2026-01-02', l: [i, 3] };
        const callable = prepareStatement(one, () => null);
        const checked = allAtOnce(checkCall(callable, { kind: 'json', params }, {}));
        assert.ok(checked.ok);
        const call = allAtOnce(writeCall(callable, checked.values, plenty, builtInEverywhere));
        const bound = bind(part.sql, params, plenty);
        assert.ok(call.ok && bound.ok, JSON.stringify([sql, bound]));
        const [found] = call.parts;
        assert.equal(found?.sql, bound.sql);
        assert.deepEqual(found?.analysis.classification, analyse(bound.sql).classification, sql);
      },
    ),
    { numRuns: 500 },
  );
  assert.ok(written > 100, `only ${written} statements`);
});
