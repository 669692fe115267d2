// The JSON schema of the configuration, from the table of keys: for editors and for programs that write the file.
import { describeInitial } from '../../src/shared/config/describe.ts';
import { type Option, optionKeys, options } from '../../src/shared/config/options.ts';
import type { ValueType } from '../../src/shared/config/values.ts';

type Schema = Readonly<Record<string, unknown>>;

/**
 * Describes the file as a program reads it: an object with a section in each field, and in it texts under their keys. Combinations of
 * keys are left to `--check`. Source: JSON Schema, 2020-12.
 */
export function describeConfiguration(): Schema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'The configuration of dbhttpd: each section of the INI file by its name',
    type: 'object',
    additionalProperties: { $ref: '#/$defs/section' },
    $defs: {
      section: {
        type: 'object',
        properties: Object.fromEntries(optionKeys.map((key) => [key, describeKey(options[key])])),
        required: ['database', 'user'],
        anyOf: [{ required: ['host'] }, { required: ['socket'] }],
        additionalProperties: false,
      },
    },
  };
}

function describeKey(option: Option): Schema {
  const { type, initial, secret, mayBeEmpty, meaning } = option;
  const plain = meaning.replaceAll('`', '');
  return {
    description: `${plain}. Default: ${describeInitial(option).replaceAll('`', '')}.`,
    ...(mayBeEmpty === true ? { type: 'string' } : describeValue(type)),
    ...(initial === undefined ? {} : { default: initial }),
    ...(secret === true ? { writeOnly: true } : {}),
  };
}

function describeValue(type: ValueType): Schema {
  switch (type.kind) {
    case 'integer': {
      const { min, max } = type;
      return {
        type: ['string', 'integer'],
        pattern: '^[0-9]{1,16}$',
        minimum: min,
        maximum: max,
      };
    }
    case 'duration':
      return { type: 'string', pattern: '^(0|[0-9]{1,16} ?(ms|s|m|h))$' };
    case 'size':
      return { type: 'string', pattern: '^[0-9]{1,16} ?(KiB|MiB)?$' };
    case 'flag':
      return { enum: ['on', 'off'] };
    case 'choice':
      return { enum: type.choices };
    case 'path':
      return { type: 'string', pattern: '^/' };
    case 'mode':
      return { type: 'string', pattern: '^0?[0-7]{3}$' };
    case 'date':
      return { type: 'string', format: 'date' };
    case 'text':
    case 'sql':
    case 'list':
    case 'address':
    case 'hosts':
    case 'table':
      return { type: 'string', minLength: 1 };
    default:
      return type satisfies never;
  }
}
