// Named statements as a TypeScript module, which exports their type for the client. Pure. Everything is in the order of its name, so that a
// line that moves in a file changes nothing.
import type { EnumAnswers } from '../../shared/database/enum-values.ts';
import type { DescribedStatement, NamedColumn } from '../../shared/database/named-columns.ts';
import { describeScalar } from '../../shared/named/scalar.ts';
import type {
  NamedStatement,
  Parameter,
  ParameterType,
  ScalarType,
} from '../../shared/named/statement.ts';

/** A statement, and what a server says of it. */
export type TypedStatement = {
  readonly statement: NamedStatement;
  readonly described: DescribedStatement;
  readonly enums: EnumAnswers;
  /** Whether its section has a table for idempotency keys. */
  readonly hasKeys: boolean;
};

/** The text of the module. The names of statements are distinct. */
export function writeTypes(statements: readonly TypedStatement[]): string {
  const sorted = byName(statements, ({ statement: { name } }) => name);
  const members = sorted.flatMap((one) => describeStatement(one));
  return [
    '// The named statements of a gateway, for `connect<Named>(…)` of dbhttpd-client.',
    '// `dbhttpd --types` has written this. Do not edit it: change the statements, and write it again.',
    '',
    ...(members.length === 0
      ? ['export type Named = Record<never, never>;']
      : ['export type Named = {', ...indent(members), '};']),
    '',
  ].join('\n');
}

function describeStatement({ statement, described, enums, hasKeys }: TypedStatement): string[] {
  const { name, kind, description, parts, errors, refusals } = statement;
  const codes = [...errors, ...refusals].map(({ code, status, text }) =>
    `\`${code}\` (${status}): ${text}`.replace(/: $/, ''),
  );
  const failures = [...new Set(codes)].sort().map((code) => `Fails with ${code}`);
  const at = parts.findIndex(({ isAnswer }) => isAnswer);
  const steps = parts
    .flatMap((part, index) => (part.step === null ? [] : [{ name: part.step, index }]))
    .sort((one, other) => compare(one.name, other.name));
  const rowsOf = (index: number) =>
    describeRows(described.parts[index] ?? null, mayHaveRows(statement, index));
  const key = statement.isKeyRequired ? 'required' : 'optional';
  return [
    ...document([...(description === '' ? [] : description.split('\n')), ...failures]),
    `${name}: {`,
    ...indent([
      `kind: '${kind}';`,
      ...(!statement.isRead && hasKeys ? [`key: '${key}';`] : []),
      ...(isAlone(statement) ? ['alone: true;'] : []),
      ...describeParameters(statement, enums),
      ...rowsOf(at),
      ...(steps.length === 0
        ? []
        : [
            'steps: {',
            ...indent(
              steps.flatMap((step) => [`${step.name}: {`, ...indent(rowsOf(step.index)), '};']),
            ),
            '};',
          ]),
    ]),
    '};',
  ];
}

/** Whether it is a transaction of its own, which no other may hold. */
function isAlone({ kind, isRead, parts: [part] }: NamedStatement): boolean {
  if (kind === 'exec') return part !== undefined && part.expect !== null;
  return kind === 'batch' || (kind === 'one' && !isRead);
}

/** Whether a part without known columns may have rows all the same. */
function mayHaveRows({ kind, parts }: NamedStatement, index: number): boolean {
  if (kind === 'one' || kind === 'many') return true;
  return /^call\b/i.test(parts[index]?.sql ?? '');
}

function describeRows(columns: readonly NamedColumn[] | null, isOpen: boolean): string[] {
  if (columns === null) return [isOpen ? 'row: Record<string, unknown>;' : 'row: never;'];
  const fixed = byName(
    columns.filter(({ nameVaries }) => nameVaries !== true),
    ({ name }) => name,
  );
  const wide = fixed.filter(({ type }) => type === 'BIGINT').map(({ name }) => quote(name));
  return [
    'row: {',
    ...indent([
      ...fixed.flatMap((column) => [
        ...document([describeColumn(column)]),
        `${keyOf(column.name)}: ${typeOfColumn(column)};`,
      ]),
      ...(fixed.length < columns.length ? ['[column: string]: unknown;'] : []),
    ]),
    '};',
    ...(wide.length === 0 ? [] : [`bigint: ${wide.join(' | ')};`]),
  ];
}

const numbers: ReadonlySet<string> = new Set([
  'TINYINT',
  'SMALLINT',
  'MEDIUMINT',
  'INT',
  'YEAR',
  'FLOAT',
  'DOUBLE',
]);

/** The cells of replies: BIGINT and DECIMAL are texts with all their digits, JSON is any value, bytes are base64. */
function typeOfColumn({ type, nullable }: NamedColumn): string {
  if (type === null || type === 'JSON' || type === 'UNKNOWN') return 'unknown';
  if (type === 'NULL') return 'null';
  return `${numbers.has(type) ? 'number' : 'string'}${nullable ? ' | null' : ''}`;
}

function describeColumn({ type, unsigned, precision, scale, encoding }: NamedColumn): string {
  if (type === null) return 'The type depends on the parameters.';
  const digits = precision === undefined || scale === undefined ? '' : `(${precision},${scale})`;
  const sign = unsigned === true ? ' UNSIGNED' : '';
  return `${type}${digits}${sign}${encoding === undefined ? '' : ', as base64'}`;
}

function describeParameters({ parameters }: NamedStatement, enums: EnumAnswers): string[] {
  const sent = parameters.filter(({ fallback }) => fallback.kind !== 'claim');
  if (sent.length === 0) return ['params: Record<string, never>;'];
  const members = byName(sent, ({ name }) => name).flatMap((parameter) =>
    describeParameter(parameter, enums),
  );
  return ['params: {', ...indent(members), '};'];
}

function describeParameter({ name, type, fallback }: Parameter, enums: EnumAnswers): string[] {
  const meaning = describeValues(type);
  const initial = fallback.kind === 'value' ? `Default: ${fallback.text}` : '';
  const written = typeOfParameter(type, enums);
  const rest = fallback.kind === 'null' ? `${written} | null` : written;
  const isRequired = fallback.kind === 'required';
  return [
    ...document([...(meaning === '' ? [] : [meaning]), ...(initial === '' ? [] : [initial])]),
    isRequired ? `${name}: ${rest};` : `${name}?: ${rest} | undefined;`,
  ];
}

/** The bounds that the type does not have. */
function describeValues(type: ParameterType): string {
  switch (type.kind) {
    case 'bool':
    case 'json':
    case 'uuid':
    case 'enum':
    case 'enum of':
    case 'choice':
      return '';
    case 'int':
    case 'float':
      return type.range.min === null && type.range.max === null ? '' : describeType(type);
    case 'list':
      return `1 to ${type.maxItems} values`;
    case 'records':
      return `At most ${type.maxItems} objects`;
    default:
      return describeType(type);
  }
}

function describeType(type: ScalarType): string {
  const text = describeScalar(type);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function typeOfParameter(type: ParameterType, enums: EnumAnswers): string {
  switch (type.kind) {
    case 'int': {
      const { min, max } = type.range;
      const isSafe = [min, max].every((end) => end !== null && Number.isSafeInteger(Number(end)));
      // The rows of other statements have BIGINT as text.
      return isSafe ? 'number' : 'number | string | bigint';
    }
    case 'decimal':
      return 'number | string | bigint';
    case 'float':
      return 'number';
    case 'bool':
      return 'boolean';
    case 'bytes':
      return 'string | Uint8Array';
    case 'json':
      return 'string | number | boolean | bigint | object';
    case 'text':
    case 'date':
    case 'datetime':
    case 'time':
    case 'uuid':
      return 'string';
    case 'enum':
      return unionOf(type.values);
    case 'enum of': {
      const values = enums.valuesOf(type.table, type.column);
      return values === null ? 'string' : unionOf([...values]);
    }
    case 'choice':
      return unionOf(type.choices.map(({ label }) => label));
    case 'list':
      return listOf(typeOfParameter(type.of, enums));
    case 'records': {
      const fields = byName(type.fields, ({ name }) => name).map(
        ({ name, type: of }) => `${name}: ${typeOfParameter(of, enums)}`,
      );
      return `readonly { ${fields.join('; ')} }[]`;
    }
    default:
      return type satisfies never;
  }
}

/** `readonly` and `|` bind less than the brackets of a list: an item that has one of them needs parentheses. */
function listOf(item: string): string {
  return /^readonly |\|/.test(item) ? `readonly (${item})[]` : `readonly ${item}[]`;
}

function unionOf(values: readonly string[]): string {
  return values.length === 0 ? 'never' : values.map(quote).join(' | ');
}

/** A comment for the next line. */
function document(lines: readonly string[]): string[] {
  const safe = lines.map((line) => line.replaceAll('*/', '*\\/'));
  if (safe.length === 0) return [];
  if (safe.length === 1) return [`/** ${safe[0]} */`];
  return ['/**', ...safe.map((line) => ` * ${line}`.trimEnd()), ' */'];
}

function keyOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name);
}

function quote(text: string): string {
  const inner = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${inner}'`;
}

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => (line === '' ? '' : `  ${line}`));
}

function byName<One>(list: readonly One[], nameOf: (one: One) => string): readonly One[] {
  return [...list].sort((one, other) => compare(nameOf(one), nameOf(other)));
}

/** By UTF-16 units, whatever the language of the machine is. */
function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
