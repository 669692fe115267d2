// The parameters of a named statement as a JSON Schema (2020-12), for OpenAPI and for agents.
import { parseJson } from './json-value.ts';
import type { EnumValues } from './scalar.ts';
import type { NamedStatement, Parameter, ParameterType, Range } from './statement.ts';

/** A schema, or a part of one. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The schema of the object `params`. Parameters that come from claims are not in it: no client can send them. */
export function schemaOfParameters(
  { parameters }: NamedStatement,
  enumValues: EnumValues,
): JsonSchema {
  const sent = parameters.filter(({ fallback }) => fallback.kind !== 'claim');
  const properties = sent.map((parameter) => [parameter.name, schemaOf(parameter, enumValues)]);
  const required = sent.filter(({ fallback }) => fallback.kind === 'required');
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 && { required: required.map(({ name }) => name) }),
    additionalProperties: false,
  };
}

/** The schema of one parameter, with its default. */
export function schemaOf({ type, fallback }: Parameter, enumValues: EnumValues): JsonSchema {
  const schema = schemaOfType(type, enumValues);
  if (fallback.kind === 'null') return { ...orNull(schema), default: null };
  if (fallback.kind !== 'value') return schema;
  return { ...schema, default: defaultOf(type, fallback.text) };
}

function orNull(schema: JsonSchema): JsonSchema {
  const { type, enum: values } = schema;
  // A schema without a type takes null anyway.
  if (type === undefined) return schema;
  const types = Array.isArray(type) ? [...type, 'null'] : [type, 'null'];
  return { ...schema, type: types, ...(Array.isArray(values) && { enum: [...values, null] }) };
}

function defaultOf(type: ParameterType, text: string): unknown {
  switch (type.kind) {
    case 'int':
      return Number.isSafeInteger(Number(text)) ? Number(text) : text;
    case 'float':
      return Number(text);
    case 'bool':
      return text === 'true';
    case 'json':
      return JSON.parse(parseJson(text) === null ? 'null' : text);
    default:
      return text;
  }
}

function schemaOfType(type: ParameterType, enumValues: EnumValues): JsonSchema {
  switch (type.kind) {
    case 'int':
      return schemaOfInt(type.range);
    case 'decimal':
      return {
        type: ['number', 'string'],
        pattern: '^-?\\d+(\\.\\d+)?$',
        ...numberBounds(type.range),
        description: `at most ${type.precision - type.scale} digits before the point and ${type.scale} after it`,
      };
    case 'float':
      return { type: 'number', ...numberBounds(type.range) };
    case 'bool':
      return { type: 'boolean' };
    case 'text':
      return { type: 'string', maxLength: type.maxCharacters, ...schemaOfPattern(type.pattern) };
    case 'date':
      return { type: 'string', format: 'date', ...describeRange(type.range) };
    case 'datetime':
      return {
        type: 'string',
        pattern: '^\\d{4}-\\d\\d-\\d\\d[ T]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,6})?)?$',
        ...describeRange(type.range),
      };
    case 'time':
      return {
        type: 'string',
        pattern: '^-?\\d{2,3}:\\d\\d(:\\d\\d(\\.\\d{1,6})?)?$',
        ...describeRange(type.range),
      };
    case 'json':
      return {};
    case 'bytes':
      return { type: 'string', contentEncoding: 'base64' };
    case 'uuid':
      return { type: 'string', format: 'uuid' };
    case 'enum':
      return { type: 'string', enum: type.values };
    case 'enum of': {
      const values = enumValues(type.table, type.column);
      return { type: 'string', ...(values !== null && { enum: [...values] }) };
    }
    case 'choice':
      return { type: 'string', enum: type.choices.map(({ label }) => label) };
    case 'list':
      return {
        type: 'array',
        items: schemaOfType(type.of, enumValues),
        minItems: 1,
        maxItems: type.maxItems,
      };
    case 'records': {
      const fields = type.fields.map(({ name, type: of }) => [name, schemaOfType(of, enumValues)]);
      const items = {
        type: 'object',
        properties: Object.fromEntries(fields),
        required: type.fields.map(({ name }) => name),
        additionalProperties: false,
      };
      return { type: 'array', items, maxItems: type.maxItems };
    }
    default:
      return type satisfies never;
  }
}

/** Integers that a JavaScript number cannot hold are texts, too. */
function schemaOfInt(range: Range): JsonSchema {
  const isSafe = [range.min, range.max].every(
    (bound) => bound !== null && Number.isSafeInteger(Number(bound)),
  );
  if (isSafe) return { type: 'integer', ...numberBounds(range) };
  return { type: ['integer', 'string'], pattern: '^-?\\d+$', ...numberBounds(range) };
}

function numberBounds({ min, max }: Range): JsonSchema {
  return {
    ...(min !== null && { minimum: Number(min) }),
    ...(max !== null && { maximum: Number(max) }),
  };
}

function describeRange({ min, max }: Range): JsonSchema {
  if (min === null && max === null) return {};
  return {
    description: [min === null ? '' : `from ${min}`, max === null ? '' : `to ${max}`]
      .join(' ')
      .trim(),
  };
}

/** Patterns of RE2 that JSON Schema's regular expressions do not know are only described. */
function schemaOfPattern(pattern: string | null): JsonSchema {
  if (pattern === null) return {};
  try {
    const whole = `^(?:${pattern})$`;
    new RegExp(whole, 'u');
    return { pattern: whole };
  } catch {
    return { description: `matches the RE2 pattern ${pattern}` };
  }
}
