// Reads one comment line of a file: a head, a directive, a step or a part of the description. A line that looks like one of the first
// three and is none is a fault, so that a misspelling cannot become a description.
import { parseValue } from '../config/values.ts';
import { findNearest } from '../nearest-name.ts';
import { LineFault, LineReader } from './line-reader.ts';
import type {
  Expect,
  Fallback,
  MappedError,
  MappedRefusal,
  ParameterType,
  StatementKind,
} from './statement.ts';
import { statementKinds } from './statement.ts';
import { readFallback, readName, readType } from './type-reader.ts';

/** The meaning of a comment line. */
export type Comment =
  | { readonly kind: 'description'; readonly text: string }
  | { readonly kind: 'head'; readonly name: string; readonly of: StatementKind }
  | Directive
  | Step
  /** `about`: the directive that it is meant to be; its name, if it is a parameter. */
  | {
      readonly kind: 'fault';
      readonly problem: string;
      readonly about: string;
      readonly name: string | null;
    };

/** A line of a head that is not the first. */
export type Directive =
  | { readonly kind: 'for'; readonly clients: readonly string[] | null }
  | {
      readonly kind: 'param';
      readonly name: string;
      readonly type: ParameterType;
      readonly fallback: Fallback;
    }
  | { readonly kind: 'key' }
  | { readonly kind: 'max_age'; readonly seconds: number }
  | { readonly kind: 'error'; readonly error: MappedError }
  | { readonly kind: 'refusal'; readonly refusal: MappedRefusal }
  | { readonly kind: 'column'; readonly column: string };

/** A line about the SQL statement after it. */
export type Step =
  | { readonly kind: 'step'; readonly name: string }
  | { readonly kind: 'expect'; readonly expect: Expect }
  | { readonly kind: 'answer' };

/** `before`: no token of the SQL statement has come; `within`: between its tokens, or behind its end on the same line. */
export type CommentPlace = 'before' | 'within';

const readers: Readonly<Record<string, (line: LineReader) => Comment>> = {
  name: readHead,
  for: readFor,
  param: readParameter,
  key: readKey,
  max_age: readMaxAge,
  error: readError,
  column: readColumn,
  step: (line) => {
    line.expect(': ', 'after step');
    return { kind: 'step', name: readName(line, 'of a step') };
  },
  expect: readExpect,
  answer: () => ({ kind: 'answer' }),
};
const keywords = Object.keys(readers);

/** Reads the text behind `--`. */
export function readComment(text: string, place: CommentPlace): Comment {
  const trimmed = text.trim();
  const [, first = '', rest = ''] = /^([A-Za-z_][\w-]*)(.*)$/s.exec(trimmed) ?? [];
  const reader = Object.hasOwn(readers, first) ? readers[first] : undefined;
  const isProse = place === 'within' && !looksLikeDirective(rest) && trimmed !== 'answer';
  if (reader === undefined || isProse) return readOther(trimmed, first, rest, place);
  const line = new LineReader(trimmed);
  line.at = first.length;
  try {
    const comment = reader(line);
    line.end(`\`${first}\``);
    return comment;
  } catch (cause) {
    if (!(cause instanceof LineFault)) throw cause;
    const hint =
      looksLikeDirective(rest) || rest === '' ? '' : '; a description begins with another word';
    const name = first === 'param' ? (/^\s+([a-z][a-z0-9_]*)/.exec(rest)?.[1] ?? null) : null;
    return {
      kind: 'fault',
      problem: `\`-- ${first}\`: ${cause.message}${hint}`,
      about: first,
      name,
    };
  }
}

/** `: …`, or a word and then `: …`. */
function looksLikeDirective(rest: string): boolean {
  return /^(?:\s+[^\s:]+)?\s*:/.test(rest);
}

function readOther(text: string, first: string, rest: string, place: CommentPlace): Comment {
  const near = findNearest(first, keywords);
  const isMisspelt = near !== null && looksLikeDirective(rest);
  const isUnknown = place === 'before' && /^[a-z]/.test(first) && /^\s*:(?:\s|$)/.test(rest);
  if (!isMisspelt && !isUnknown) return { kind: 'description', text };
  const meant = near === null ? `there are ${keywords.join(', ')}` : `is \`-- ${near}\` meant?`;
  const problem = `\`-- ${first}\` looks like a directive and is none: ${meant}`;
  return { kind: 'fault', problem, about: near ?? first, name: null };
}

function readHead(line: LineReader): Comment {
  line.expect(': ', 'after name');
  const name = readName(line, 'of a statement');
  line.expect(':', `and the kind after the name, as in \`-- name: ${name} :many\``);
  const word = line.need(/[a-z]+/y, 'a kind');
  const of = statementKinds.find((kind) => kind === word);
  if (of === undefined) {
    throw new LineFault(`\`:${word}\` is not a kind; there are :${statementKinds.join(', :')}`);
  }
  return { kind: 'head', name, of };
}

function readFor(line: LineReader): Directive {
  line.expect(': ', 'after for');
  if (line.take('*')) return { kind: 'for', clients: null };
  const clients: string[] = [];
  do {
    const client = line.need(/[a-z0-9_-]{1,64}(?![\w-])/y, 'the name of a client, or *');
    if (clients.includes(client)) throw new LineFault(`\`${client}\` is there twice`);
    clients.push(client);
  } while (line.take(','));
  return { kind: 'for', clients };
}

function readParameter(line: LineReader): Directive {
  const name = readName(line, 'of a parameter');
  line.expect(': ', `after the name ${name}`);
  const type = readType(line);
  return { kind: 'param', name, type, fallback: readFallback(line, type) };
}

function readKey(line: LineReader): Directive {
  line.expect(': ', 'after key');
  line.expect('required', 'after `key: `');
  return { kind: 'key' };
}

const daySeconds = 24 * 3600;

function readMaxAge(line: LineReader): Directive {
  line.expect(': ', 'after max_age');
  const range = { kind: 'duration', min: 1000, max: 365 * daySeconds * 1000 } as const;
  const parsed = parseValue(range, line.need(/\S+/y, 'a duration such as 10s'));
  if (!parsed.ok) throw new LineFault(`the duration ${parsed.problem}`);
  const seconds = Number(parsed.value) / 1000;
  if (!Number.isInteger(seconds)) throw new LineFault('the duration must be in whole seconds');
  return { kind: 'max_age', seconds };
}

/** Their meaning is the gateway's: whether a statement may have been executed, and whether to repeat it. */
const gatewayStatuses = [429, 502, 503, 504];

function readError(line: LineReader): Directive {
  const errno = line.match(/\d{1,5}(?!\d)/y);
  const key = errno ?? readCode(line);
  line.expect(': ', `after error ${key}`);
  const status = Number(line.need(/[45]\d\d(?!\d)/y, 'a status from 400 to 599'));
  if (gatewayStatuses.includes(status)) {
    throw new LineFault(
      `the status ${status} reports what the gateway did, and is not for applications`,
    );
  }
  if (errno !== null) {
    const code = readCode(line);
    return { kind: 'error', error: { errno: Number(errno), status, code, text: takeRest(line) } };
  }
  const text = takeRest(line);
  if (text === '') throw new LineFault(`a text is missing after the status ${status}`);
  return { kind: 'refusal', refusal: { code: key, status, text } };
}

function readCode(line: LineReader): string {
  return line.need(/[A-Z][A-Z0-9_]{0,63}(?!\w)/y, 'a code ([A-Z][A-Z0-9_]*)');
}

function takeRest(line: LineReader): string {
  const text = line.rest;
  line.at = line.text.length;
  return text;
}

function readColumn(line: LineReader): Directive {
  const column = readName(line, 'of a column');
  line.expect(': ', `after column ${column}`);
  line.need(/not +null\b/y, '`not null`');
  return { kind: 'column', column };
}

function readExpect(line: LineReader): Step {
  line.expect(': ', 'after expect');
  const of = line.need(/affected_rows|row_count/y, 'affected_rows or row_count');
  line.expect('=', `after ${of}`);
  const bounds = readBounds(line);
  const code = line.match(/else(?=\s)/y) === null ? null : readCode(line);
  return { kind: 'expect', expect: { of: of as Expect['of'], bounds, code } };
}

function readBounds(line: LineReader): Expect['bounds'] {
  if (line.match(/count(?=\()/y) !== null) {
    line.expect('(', 'after count');
    const parameter = readName(line, 'of a parameter');
    line.expect(')', 'after the parameter');
    return { kind: 'count', parameter };
  }
  const wanted = 'a number, a range or count(…)';
  const min = Number(line.need(/\d{1,15}(?!\d)/y, wanted));
  const max = line.take('..') ? Number(line.need(/\d{1,15}(?!\d)/y, 'a number')) : min;
  if (max < min) throw new LineFault('the range is empty');
  return { kind: 'range', min, max };
}
