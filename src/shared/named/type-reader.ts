// Reads the type of a parameter, and what takes the place of a value that a request does not have.

import { allAtOnce } from '../pieces.ts';
import { Lexer, tokenKinds } from '../sql/lexer.ts';
import { parseDecimal } from './decimal.ts';
import { parseJson, writeJson } from './json-value.ts';
import { LineFault, type LineReader } from './line-reader.ts';
import { compilePattern } from './pattern.ts';
import { compileScalar, describeScalar } from './scalar.ts';
import type {
  ChoiceType,
  Fallback,
  Field,
  ListType,
  ParameterType,
  Range,
  RecordsType,
  ScalarType,
} from './statement.ts';

const namePattern = /[a-z][a-z0-9_]{0,39}(?![A-Za-z0-9_])/y;
/** A value of an enum, and the label of a choice. */
const wordPattern = /[A-Za-z0-9_-]+/y;
const numberPattern = /-?\d+(?:\.\d+)?/y;
const stringPattern = /'(?:[^']|'')*'/y;
/** Names of MySQL that need no quotes. */
const identifierPattern = /[\p{L}\p{N}_$]+/uy;
const countPattern = /[1-9]\d{0,8}(?!\d)/y;
const maxNesting = 8;

/** Takes a name of a statement, parameter, field or step. @throws LineFault */
export function readName(line: LineReader, of: string): string {
  return line.need(namePattern, `a name ${of} ([a-z][a-z0-9_]*, at most 40 characters)`);
}

/** Takes a type. @throws LineFault */
export function readType(line: LineReader, nesting = 0): ParameterType {
  if (nesting > maxNesting) throw new LineFault('the type is nested too deep');
  const kind = line.need(/[a-z]+/y, 'a type');
  switch (kind) {
    case 'int':
    case 'float':
    case 'date':
    case 'datetime':
    case 'time':
      return { kind, range: line.take('(') ? closed(line, readRange(line, kind), kind) : noRange };
    case 'bool':
    case 'json':
    case 'bytes':
    case 'uuid':
      if (line.take('(')) throw new LineFault(`${kind} has no range`);
      return { kind };
    case 'decimal':
      return readDecimal(line);
    case 'text':
      return readText(line);
    case 'enum':
      return readEnum(line);
    case 'choice':
      if (nesting > 0) throw new LineFault('a choice stands only in the SQL');
      return readChoice(line);
    case 'list':
      return readList(line, nesting);
    case 'records':
      return readRecords(line, nesting);
    default: {
      const known =
        'int, decimal, float, bool, text, date, datetime, time, json, bytes, uuid, enum, choice, list, records';
      throw new LineFault(`\`${kind}\` is not a type; there are ${known}`);
    }
  }
}

const noRange: Range = { min: null, max: null };
type RangedType = Extract<ScalarType, { readonly range: Range }>;
type Ranged = RangedType['kind'];

function closed<Value>(line: LineReader, value: Value, of: string): Value {
  line.expect(')', `at the end of ${of}`);
  return value;
}

/** `[literal] ".." [literal]` */
function readRange(line: LineReader, kind: Ranged, limits?: RangedType): Range {
  const plain = limits ?? ({ kind, range: noRange } as RangedType);
  const min = readBound(line, plain);
  line.expect('..', `in the range of ${kind}`);
  const max = readBound(line, plain);
  const range = { min, max };
  if (max !== null && min !== null && !checkText({ ...plain, range }, min)) {
    throw new LineFault(`the range of ${kind} is empty`);
  }
  return range;
}

function readBound(line: LineReader, type: RangedType): string | null {
  const literal = readLiteral(line);
  if (literal === null) return null;
  const isNumber = type.kind === 'int' || type.kind === 'float' || type.kind === 'decimal';
  const checked = compileScalar(type, () => null)(literal.text, true);
  if (literal.kind === (isNumber ? 'number' : 'string') && checked.ok) {
    // Bounds of moments are compared in their normal form.
    return typeof checked.value === 'string' ? checked.value : literal.text;
  }
  throw new LineFault(`a bound of ${type.kind} must be ${describeScalar(type)}`);
}

/** Whether a text is a value of the type. The values of a column are not known here. */
function checkText(type: ScalarType, text: string): boolean {
  if (type.kind === 'json') {
    const parsed = parseJson(text);
    return parsed !== null && allAtOnce(writeJson(parsed.value)) !== null;
  }
  const checked = compileScalar(type, () => null)(text, true);
  return checked.ok || checked.reason === 'unknown';
}

type Literal = { readonly kind: 'number' | 'string' | 'bool'; readonly text: string };

function readLiteral(line: LineReader): Literal | null {
  const string = line.match(stringPattern);
  if (string !== null) return { kind: 'string', text: unquote(string) };
  const number = line.match(numberPattern);
  if (number !== null) {
    if (parseDecimal(number) === null) throw new LineFault(`\`${number}\` is not a number`);
    return { kind: 'number', text: number };
  }
  const word = line.match(/(?:true|false)(?![\w-])/y);
  return word === null ? null : { kind: 'bool', text: word };
}

function unquote(string: string): string {
  return string.slice(1, -1).replaceAll("''", "'");
}

function readCount(line: LineReader, what: string): number {
  return Number(line.need(countPattern, `${what} from 1`));
}

const maxPrecision = 65;
const maxScale = 30;

function readDecimal(line: LineReader): ScalarType {
  line.expect('(', 'after decimal');
  const precision = readCount(line, 'a number of digits');
  line.expect(',', 'between the digits of decimal');
  const scale = Number(line.need(/\d{1,2}(?!\d)/y, 'the number of digits after the point'));
  if (precision > maxPrecision || scale > maxScale || scale > precision) {
    throw new LineFault(
      `decimal has at most ${maxPrecision} digits, of which at most ${maxScale} are after the point`,
    );
  }
  const type = { kind: 'decimal', precision, scale, range: noRange } as const;
  const range = line.take(';') ? readRange(line, 'decimal', type) : noRange;
  return closed(line, { ...type, range }, 'decimal');
}

function readText(line: LineReader): ScalarType {
  line.expect('(', 'after text, as in text(100)');
  let pattern: string | null = null;
  if (line.take('/')) {
    // A slash in the pattern does not end it: the end is the slash before the length.
    pattern = line.need(/.*?(?=\/\s*,\s*\d+\s*\))/y, 'a pattern, as in text(/[a-z]+/, 20)');
    line.expect('/', 'after the pattern');
    line.expect(',', 'after the pattern');
    const compiled = compilePattern(pattern);
    if (typeof compiled === 'string')
      throw new LineFault(`the pattern is not one of RE2: ${compiled}`);
  }
  const maxCharacters = readCount(line, 'a number of characters');
  return closed(line, { kind: 'text', pattern, maxCharacters }, 'text');
}

function readEnum(line: LineReader): ScalarType {
  if (line.match(/of(?=\s)/y) !== null) {
    const table = line.need(identifierPattern, 'a table');
    line.expect('.', 'between table and column');
    return { kind: 'enum of', table, column: line.need(identifierPattern, 'a column') };
  }
  line.expect('(', 'after enum');
  const values: string[] = [];
  do {
    const value = line.need(wordPattern, 'a word');
    if (values.includes(value)) throw new LineFault(`\`${value}\` is there twice`);
    values.push(value);
  } while (line.take(','));
  return closed(line, { kind: 'enum', values }, 'enum');
}

function readChoice(line: LineReader): ChoiceType {
  line.expect('(', 'after choice');
  const choices: ChoiceType['choices'][number][] = [];
  do {
    const label = line.need(wordPattern, 'a label');
    if (choices.some((other) => other.label === label)) {
      throw new LineFault(`the label \`${label}\` is there twice`);
    }
    line.expect(':', `after the label ${label}`);
    choices.push({ label, sql: readChoiceSql(line, label) });
  } while (line.take('|'));
  return closed(line, { kind: 'choice', choices }, 'choice');
}

/** The SQL of a choice: up to `|` or `)` at depth 0, outside of quotes. */
function readChoiceSql(line: LineReader, label: string): string {
  const { text } = line;
  const lexer = new Lexer(text);
  lexer.end = line.at;
  let depth = 0;
  for (let before = line.at; ; before = lexer.end) {
    const kind = lexer.next();
    const fault = faultOfChoice(text, lexer, kind, before);
    if (fault !== null) throw new LineFault(`the SQL of \`${label}\` ${fault}`);
    const isEnd = kind === tokenKinds.close || text[lexer.start] === '|';
    if (depth === 0 && isEnd) break;
    if (kind === tokenKinds.open) depth += 1;
    if (kind === tokenKinds.close) depth -= 1;
  }
  const sql = text.slice(line.at, lexer.start).trim();
  if (sql === '') throw new LineFault(`the SQL of \`${label}\` is empty`);
  line.at = lexer.start;
  return sql;
}

function faultOfChoice(text: string, lexer: Lexer, kind: number, before: number): string | null {
  if (/\S/.test(text.slice(before, lexer.start))) return 'has a comment in it';
  if (lexer.unterminated) return 'has a quote that is not closed';
  switch (kind) {
    case tokenKinds.end:
      return 'does not end with | or )';
    case tokenKinds.semicolon:
      return 'has a ; in it';
    case tokenKinds.executableComment:
      return 'has a comment in it';
    case tokenKinds.placeholder:
    case tokenKinds.namedPlaceholder:
    case tokenKinds.colon:
      return 'has a placeholder in it';
    case tokenKinds.string:
      return whyReadDifferently(text.slice(lexer.start, lexer.end));
    default:
      return lexer.doubt === 0 ? null : 'reads differently on some servers';
  }
}

/** Why a string means something else under another sql_mode, behind the text that it is in; null: it does not. */
export function whyReadDifferently(string: string): string | null {
  if (string.startsWith('"'))
    return 'reads differently under ANSI_QUOTES: write \'…\' instead of "…"';
  return string.includes('\\')
    ? 'reads differently under NO_BACKSLASH_ESCAPES: a string has a backslash in it'
    : null;
}

function readList(line: LineReader, nesting: number): ListType {
  line.expect('(', 'after list');
  const of = readType(line, nesting + 1);
  if (nesting === 0 && (of.kind === 'list' || of.kind === 'records')) {
    throw new LineFault(`a list for IN (…) has single values, and no ${of.kind}`);
  }
  line.expect(';', 'after the type of the items');
  const maxItems = readCount(line, 'the highest number of items');
  return closed(line, { kind: 'list', of, maxItems }, 'list');
}

function readRecords(line: LineReader, nesting: number): RecordsType {
  line.expect('(', 'after records');
  const fields: Field[] = [];
  do {
    const name = readName(line, 'of a field');
    if (fields.some((field) => field.name === name)) {
      throw new LineFault(`the field \`${name}\` is there twice`);
    }
    line.expect(':', `after the field ${name}`);
    fields.push({ name, type: readType(line, nesting + 1) });
  } while (line.take(','));
  line.expect(';', 'after the fields');
  const maxItems = readCount(line, 'the highest number of records');
  return closed(line, { kind: 'records', fields, maxItems }, 'records');
}

/** Takes what follows the type: nothing, or ` = default`. @throws LineFault */
export function readFallback(line: LineReader, type: ParameterType): Fallback {
  if (line.rest === '') return { kind: 'required' };
  line.expect('=', 'before the default');
  if (line.match(/null(?![\w.-])/y) !== null) {
    if (type.kind === 'choice') throw new LineFault('a choice is never NULL');
    return { kind: 'null' };
  }
  if (line.take('claims.')) return { kind: 'claim', path: readClaimPath(line) };
  return { kind: 'value', text: readDefault(line, type) };
}

function readClaimPath(line: LineReader): readonly string[] {
  const path: string[] = [];
  do {
    const string = line.match(stringPattern);
    path.push(string === null ? readName(line, 'of a claim, or one in quotes') : unquote(string));
  } while (line.take('.'));
  return path;
}

function readDefault(line: LineReader, type: ParameterType): string {
  if (type.kind === 'list' || type.kind === 'records') {
    throw new LineFault(`the default of ${type.kind} can only be null or a claim`);
  }
  if (type.kind === 'choice') {
    const label = line.need(wordPattern, 'a label of the choice');
    if (type.choices.some((choice) => choice.label === label)) return label;
    throw new LineFault(`the default is not a label of the choice`);
  }
  const text = readDefaultText(line, type);
  if (text !== null && checkText(type, text)) return text;
  throw new LineFault(`the default must be ${describeScalar(type)}`);
}

/** Null: the literal is not one of the type. */
function readDefaultText(line: LineReader, type: ScalarType): string | null {
  if (type.kind === 'enum' || type.kind === 'enum of') {
    const string = line.match(stringPattern);
    return string === null ? line.need(wordPattern, 'a value of the enum') : unquote(string);
  }
  const literal = readLiteral(line);
  if (literal === null) return null;
  const wanted = literalKinds[type.kind];
  return wanted === 'any' || wanted === literal.kind ? literal.text : null;
}

/** The literals of the types. A default of JSON is the text of a value. */
const literalKinds: Readonly<
  Record<Exclude<ScalarType['kind'], 'enum' | 'enum of'>, Literal['kind'] | 'any'>
> = {
  int: 'number',
  decimal: 'number',
  float: 'number',
  bool: 'bool',
  text: 'string',
  date: 'string',
  datetime: 'string',
  time: 'string',
  json: 'any',
  bytes: 'string',
  uuid: 'string',
};
