// The JSON schema of the configuration accepts what the gateway accepts, key by key, and refuses what it refuses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describeConfiguration } from '../../../scripts/support/configuration-schema.ts';
import { type Option, optionKeys, options } from '../../../src/shared/config/options.ts';
import { parseValue } from '../../../src/shared/config/values.ts';

const validate = new Ajv2020({ formats: { date: true } }).compile(describeConfiguration());
const sound = { database: 'world', user: 'app', host: 'db' };
const accepts = (section: object) => validate({ world: section });

test('three keys are a configuration, and fewer are not', () => {
  assert.ok(accepts(sound));
  assert.ok(accepts({ database: 'world', user: 'app', socket: '/run/mysqld/mysqld.sock' }));
  for (const key of ['database', 'user', 'host']) {
    const rest = Object.entries(sound).filter(([name]) => name !== key);
    assert.ok(!accepts(Object.fromEntries(rest)), key);
  }
  assert.ok(!accepts({ ...sound, pol: '10' }));
});

test('every default is a value', () => {
  for (const key of optionKeys) {
    const { initial }: Option = options[key];
    if (initial !== undefined) assert.ok(accepts({ ...sound, [key]: initial }), key);
  }
});

/** Values for each kind of key. Ranges are left out: a text has none in JSON Schema. */
const texts = [
  ...['x', '10', '0', '5s', '5 s', '5x', '64KiB', '64 MiB', '1GiB', 'on', 'off', 'yes', '/etc/x'],
  ...['0660', '660', '0999', '-1', '', 'a, b', 'replicas', 'primary', 'verify', '127.0.0.1:9090'],
];

test('it refuses no text that the gateway accepts, and accepts only texts of the right form', () => {
  for (const key of optionKeys) {
    const { type, mayBeEmpty }: Option = options[key];
    const hasForm = /^(?:integer|duration|size|flag|choice|path|mode)$/.test(type.kind);
    for (const text of texts) {
      const parsed = parseValue(type, text);
      const isTaken = parsed.ok || (text === '' && mayBeEmpty === true);
      const isAccepted = accepts({ ...sound, [key]: text });
      if (isTaken) assert.ok(isAccepted, `${key} = ${text}`);
      const isOutOfRange = !parsed.ok && parsed.problem.startsWith('must be from');
      if (!isTaken && hasForm && !isOutOfRange) assert.ok(!isAccepted, `${key} = ${text}`);
    }
  }
});
