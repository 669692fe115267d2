// Parses a file of named statements: its statements, or every fault with its line.
import type { Analysis } from '../sql/analyse.ts';
import { tokenKinds } from '../sql/lexer.ts';
import { sessionEffectOf } from '../sql/session-statements.ts';
import { type Comment, type Directive, readComment, type Step } from './comment-reader.ts';
import { type CommentItem, cutFile, type OpenItem, type Token } from './file-items.ts';
import { type CheckedSql, checkSql } from './sql-part.ts';
import {
  type Expect,
  keyArgument,
  type MappedError,
  type MappedRefusal,
  type NamedFault,
  type NamedHead,
  type NamedStatement,
  type Parameter,
  type ParameterType,
  type Part,
  type StatementKind,
} from './statement.ts';

/** The statements of a file, or all that is wrong with it, and the heads that can be read all the same. */
export type ParsedFile =
  | { readonly ok: true; readonly statements: readonly NamedStatement[] }
  | {
      readonly ok: false;
      readonly faults: readonly NamedFault[];
      readonly heads: readonly NamedHead[];
    };

/** The facts about a section that decide whether a file is good. */
export type SectionFacts = { readonly hasIdempotencyTable: boolean };

/** Names of tools that agents have anyway. */
const reservedNames = ['query', 'describe'];

/** Parses the text of one file. @param file its name, for the statements and faults */
export function parseFile(text: string, file: string, section: SectionFacts): ParsedFile {
  return new FileParser(text, file, section).parse();
}

/** A statement that is being read. */
type Draft = {
  readonly line: number;
  /** Null: the head has a fault. */
  readonly head: { readonly name: string; readonly of: StatementKind } | null;
  readonly description: string[];
  readonly directives: { readonly directive: Directive; readonly line: number }[];
  /** Directives with a fault: their absence is no second fault. */
  readonly spoilt: Set<string>;
  readonly types: Map<string, ParameterType | null>;
  readonly used: Set<string>;
  readonly parts: DraftPart[];
  steps: PlacedStep[];
  tokens: Token[];
  /** A part of it is lost: nothing follows from what is missing. */
  isBroken: boolean;
};

type PlacedStep = { readonly step: Step; readonly line: number };
type DraftPart = {
  readonly line: number;
  readonly checked: CheckedSql;
  readonly steps: readonly PlacedStep[];
};

class FileParser {
  readonly #text: string;
  readonly #file: string;
  readonly #section: SectionFacts;
  readonly #faults: NamedFault[] = [];
  readonly #statements = new Map<string, NamedStatement>();
  /** The offsets at which lines begin. */
  readonly #lineStarts: number[] = [0];
  #draft: Draft | null = null;
  /** The places of the brackets that are open. */
  #open: number[] = [];
  #hasStrayText = false;

  constructor(text: string, file: string, section: SectionFacts) {
    this.#text = text;
    this.#file = file;
    this.#section = section;
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) {
      this.#lineStarts.push(at + 1);
    }
  }

  parse(): ParsedFile {
    for (const item of cutFile(this.#text)) {
      if (item.kind === 'comment') this.#seeComment(item);
      else if (item.kind === 'open') this.#seeOpen(item);
      else this.#seeToken(item);
    }
    this.#finish();
    const statements = [...this.#statements.values()];
    if (this.#faults.length === 0) return { ok: true, statements };
    const sorted = this.#faults.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0));
    return { ok: false, faults: sorted, heads: statements };
  }

  #fault(line: number, problem: string): void {
    this.#faults.push({ file: this.#file, line, problem });
  }

  #lineOf(offset: number): number {
    let [low, high] = [0, this.#lineStarts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#lineStarts[middle] as number) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  }

  #seeComment(item: CommentItem): void {
    const draft = this.#draft;
    const line = this.#lineOf(item.start);
    const isBefore = item.isWholeLine && (draft === null || draft.tokens.length === 0);
    const comment = readComment(item.text, isBefore ? 'before' : 'within');
    if (comment.kind === 'description') {
      const isInHead = isBefore && draft !== null && draft.parts.length === 0;
      if (isInHead) draft.description.push(comment.text);
      return;
    }
    if (item.isWholeLine && this.#begins(comment)) {
      this.#finish();
      this.#begin(comment, line);
      return;
    }
    if (comment.kind === 'fault') {
      this.#fault(line, comment.problem);
      draft?.spoilt.add(comment.about);
      if (comment.name !== null && draft !== null && !draft.types.has(comment.name)) {
        draft.types.set(comment.name, null);
      }
    } else this.#place(comment, line, isBefore);
  }

  /** Whether a statement begins here. A faulty head begins one if the statement before it has SQL. */
  #begins(comment: Comment): boolean {
    if (comment.kind === 'head') return true;
    const draft = this.#draft;
    const isLate = draft === null || draft.isBroken || draft.parts.length + draft.tokens.length > 0;
    return comment.kind === 'fault' && comment.about === 'name' && isLate;
  }

  #begin(comment: Comment, line: number): void {
    if (comment.kind === 'fault') this.#fault(line, comment.problem);
    this.#draft = {
      line,
      head: comment.kind === 'head' ? comment : null,
      description: [],
      directives: [],
      spoilt: new Set(),
      types: new Map(),
      used: new Set(),
      parts: [],
      steps: [],
      tokens: [],
      isBroken: false,
    };
  }

  #place(comment: Comment, line: number, isBefore: boolean): void {
    const draft = this.#draft;
    const { kind } = comment;
    if (draft === null) {
      this.#fault(line, `\`-- ${kind}\` is before the first \`-- name: …\``);
    } else if (kind === 'step' || kind === 'expect' || kind === 'answer') {
      if (isBefore) draft.steps.push({ step: comment, line });
      else this.#fault(line, `\`-- ${kind}\` must stand before the statement that it describes`);
    } else if (kind !== 'description' && kind !== 'head' && kind !== 'fault') {
      const isInHead = isBefore && draft.parts.length === 0;
      if (isInHead) this.#declare(draft, comment, line);
      else this.#fault(line, `\`-- ${kind}\` must stand before the first token of the SQL`);
    }
  }

  #declare(draft: Draft, directive: Directive, line: number): void {
    if (directive.kind === 'param' && draft.types.get(directive.name) == null) {
      draft.types.set(directive.name, directive.type);
    }
    const key = keyOf(directive);
    const first = draft.directives.find((other) => keyOf(other.directive) === key);
    if (first === undefined) draft.directives.push({ directive, line });
    else this.#fault(line, `\`-- ${key}\` is already in line ${first.line}`);
  }

  #seeOpen({ start, problem }: OpenItem): void {
    this.#fault(this.#lineOf(start), problem);
    if (this.#draft !== null) this.#draft.isBroken = true;
  }

  #seeToken(token: Token): void {
    const draft = this.#draft;
    if (draft === null) {
      if (!this.#hasStrayText) {
        this.#fault(this.#lineOf(token.start), 'there is text before the first `-- name: …`');
      }
      this.#hasStrayText = true;
      return;
    }
    if (token.kind === tokenKinds.semicolon) {
      this.#endPart(draft, token);
      return;
    }
    draft.tokens.push(token);
    if (token.kind === tokenKinds.open) this.#open.push(token.start);
    else if (token.kind === tokenKinds.close && this.#open.pop() === undefined) {
      this.#fault(this.#lineOf(token.start), 'a bracket is closed that is not open');
    }
  }

  /** @param semicolon null: the text ends without one */
  #endPart(draft: Draft, semicolon: Token | null): void {
    const [first, ...others] = draft.tokens;
    if (first === undefined) {
      if (semicolon === null) return;
      this.#fault(this.#lineOf(semicolon.start), 'there is no statement before this semicolon');
      return;
    }
    const line = this.#lineOf(first.start);
    const open = this.#open.at(-1);
    if (open !== undefined) {
      this.#fault(this.#lineOf(open), 'the bracket that begins here is not closed');
    } else if (semicolon === null) {
      this.#fault(line, 'the statement that begins here does not end with a semicolon');
    }
    this.#open = [];
    const checked = checkSql(this.#text, [first, ...others], draft.types);
    for (const { offset, problem } of checked.faults) this.#fault(this.#lineOf(offset), problem);
    for (const { name } of checked.placeholders) draft.used.add(name);
    draft.parts.push({ line, checked, steps: draft.steps });
    draft.tokens = [];
    draft.steps = [];
  }

  #finish(): void {
    const draft = this.#draft;
    if (draft === null) return;
    this.#draft = null;
    if (draft.isBroken) this.#open = [];
    else {
      this.#endPart(draft, null);
      for (const { step, line } of draft.steps) {
        this.#fault(line, `\`-- ${step.kind}\` has no statement after it`);
      }
      for (const { line, problem } of problemsOfLines(draft)) this.#fault(line, problem);
      for (const { line, problem } of problemsOfParts(draft)) this.#fault(line, problem);
    }
    for (const problem of problemsOfHead(draft, this.#section)) this.#fault(draft.line, problem);
    if (draft.head === null) return;
    const { name } = draft.head;
    const first = this.#statements.get(name);
    if (first === undefined) this.#statements.set(name, compose(draft, draft.head, this.#file));
    else this.#fault(draft.line, `\`${name}\` is already in line ${first.line}`);
  }
}

type LineProblem = { readonly line: number; readonly problem: string };

/** Two directives with the same key contradict each other. */
function keyOf(directive: Directive): string {
  switch (directive.kind) {
    case 'param':
      return `param ${directive.name}`;
    case 'error':
      return `error ${directive.error.errno}`;
    case 'refusal':
      return `error ${directive.refusal.code}`;
    case 'column':
      return `column ${directive.column}`;
    case 'for':
    case 'key':
    case 'max_age':
      return directive.kind;
    default:
      return directive satisfies never;
  }
}

function has(draft: Draft, kind: Directive['kind']): boolean {
  return draft.directives.some(({ directive }) => directive.kind === kind);
}

function problemsOfHead(draft: Draft, section: SectionFacts): readonly string[] {
  const problems: string[] = [];
  const { head, parts } = draft;
  if (head !== null && reservedNames.includes(head.name)) {
    problems.push(`\`${head.name}\` is the name of a tool that every agent has`);
  }
  if (!has(draft, 'for') && !draft.spoilt.has('for')) {
    problems.push('`-- for: …` is missing: the clients that may call it, or *');
  }
  if (parts.length === 0 && !draft.isBroken) problems.push('there is no SQL');
  if (has(draft, 'key') && !section.hasIdempotencyTable) {
    problems.push('`-- key: required` needs `idempotency_table` in the section');
  }
  return problems;
}

function problemsOfLines(draft: Draft): readonly LineProblem[] {
  const problems: LineProblem[] = [];
  const isSound = draft.parts.every(({ checked }) => checked.analyses.length > 0);
  const facts: DirectiveFacts = {
    isRead: isSound ? isReading(draft) : null,
    hasClaims: draft.directives.some(
      ({ directive }) => directive.kind === 'param' && directive.fallback.kind === 'claim',
    ),
    codes: draft.parts.flatMap(({ steps }) => steps.map(({ step }) => codeOf(step))),
    used: draft.used,
  };
  for (const { directive, line } of draft.directives) {
    const problem = problemOfDirective(directive, facts);
    if (problem !== null) problems.push({ line, problem });
  }
  return problems;
}

/** The facts that decide whether a directive fits its statement. */
type DirectiveFacts = {
  /** Null: the SQL has a fault. */
  readonly isRead: boolean | null;
  readonly hasClaims: boolean;
  /** The codes of all expectations. */
  readonly codes: readonly (string | null)[];
  /** The parameters in the SQL. */
  readonly used: ReadonlySet<string>;
};

function problemOfDirective(directive: Directive, facts: DirectiveFacts): string | null {
  switch (directive.kind) {
    case 'param': {
      const { name } = directive;
      if (name === keyArgument && facts.isRead === false) {
        return `agents send the key of a write as \`${name}\`: no parameter of a write has this name`;
      }
      return facts.used.has(name) ? null : `the parameter \`${name}\` is not used`;
    }
    case 'key':
      return facts.isRead ? '`-- key: required` is for a statement that writes' : null;
    case 'max_age':
      if (facts.hasClaims) {
        return '`-- max_age` cannot stand beside claims: the reply differs from user to user';
      }
      return facts.isRead === false ? '`-- max_age` is for a statement that only reads' : null;
    case 'refusal': {
      const { code } = directive.refusal;
      return facts.codes.includes(code) ? null : `no \`-- expect\` has \`else ${code}\``;
    }
    case 'for':
    case 'error':
    case 'column':
      return null;
    default:
      return directive satisfies never;
  }
}

function codeOf(step: Step): string | null {
  return step.kind === 'expect' ? step.expect.code : null;
}

function isReading({ head, parts }: Draft): boolean {
  return (
    head?.of !== 'exec' &&
    parts.every(({ checked }) =>
      checked.analyses.every(({ classification }) => classification.readOnlyAllowed),
    )
  );
}

function problemsOfParts(draft: Draft): readonly LineProblem[] {
  const problems: LineProblem[] = [];
  const names = new Set<string>();
  let answer: number | null = null;
  for (const [at, { line, checked, steps }] of draft.parts.entries()) {
    const isSecond = at === 1 && draft.head !== null && draft.head.of !== 'batch';
    if (isSecond) problems.push({ line, problem: 'only a `:batch` has several statements' });
    const wrong = checked.analyses.map((one) => problemOfKind(draft, one, checked)).find(isText);
    if (wrong !== undefined) problems.push({ line, problem: wrong });
    const kinds = new Set<Step['kind']>();
    for (const { step, line: at } of steps) {
      const problem = problemOfStep(draft, step, checked, kinds, names, answer);
      if (problem !== null) problems.push({ line: at, problem });
      kinds.add(step.kind);
      if (step.kind === 'step') names.add(step.name);
      if (step.kind === 'answer') answer ??= at;
    }
  }
  return problems;
}

function isText(text: string | null): text is string {
  return text !== null;
}

function problemOfKind({ head }: Draft, analysis: Analysis, checked: CheckedSql): string | null {
  if (head === null || head.of === 'batch') return null;
  if (sessionEffectOf(analysis) !== null) {
    return 'the statement only affects its session, which ends with the request';
  }
  const { kind, readOnlyAllowed } = analysis.classification;
  if (head.of === 'exec') {
    const isRead = kind === 'read' && readOnlyAllowed;
    return isRead ? '`:exec` is for a write: a statement that reads is `:one` or `:many`' : null;
  }
  return givesRows(analysis, checked)
    ? null
    : `the statement gives no rows: it is \`:exec\`, not \`:${head.of}\``;
}

/** Whether a statement may give rows, by its text. */
function givesRows({ readings: [{ facts }] }: Analysis, { hasReturning }: CheckedSql): boolean {
  if (facts.verb === 'DO' || facts.verb === 'SET') return false;
  const isWrite = ['INSERT', 'UPDATE', 'DELETE', 'REPLACE'].includes(facts.main);
  return !isWrite || hasReturning || (facts.verb !== facts.main && facts.verb !== 'WITH');
}

function problemOfStep(
  draft: Draft,
  step: Step,
  checked: CheckedSql,
  kinds: ReadonlySet<Step['kind']>,
  names: ReadonlySet<string>,
  answer: number | null,
): string | null {
  const of = draft.head?.of ?? 'batch';
  const isAllowed = of === 'batch' || (of === 'exec' && step.kind === 'expect');
  if (!isAllowed) return `\`-- ${step.kind}\` is not for \`:${of}\``;
  if (kinds.has(step.kind)) return `a statement has \`-- ${step.kind}\` once`;
  switch (step.kind) {
    case 'step':
      return names.has(step.name) ? `the step \`${step.name}\` is there twice` : null;
    case 'answer': {
      if (answer !== null) return `\`-- answer\` is already in line ${answer}`;
      const [analysis] = checked.analyses;
      const isEmpty = analysis !== undefined && !givesRows(analysis, checked);
      return isEmpty ? 'the statement after `-- answer` gives no rows' : null;
    }
    case 'expect':
      return problemOfCount(step.expect, draft);
    default:
      return step satisfies never;
  }
}

function problemOfCount({ bounds }: Expect, { types }: Draft): string | null {
  if (bounds.kind === 'range') return null;
  const type = types.get(bounds.parameter);
  if (type === undefined) return `\`${bounds.parameter}\` is not declared`;
  return type === null || type.kind === 'list' || type.kind === 'records'
    ? null
    : `count(${bounds.parameter}) needs a list or records`;
}

/** Puts a statement together. If the file has a fault, only its head is used. */
function compose(
  draft: Draft,
  head: { readonly name: string; readonly of: StatementKind },
  file: string,
): NamedStatement {
  let clients: readonly string[] | null = null;
  let maxAgeS: number | null = null;
  const parameters: Parameter[] = [];
  const errors: MappedError[] = [];
  const refusals: MappedRefusal[] = [];
  const notNullColumns: string[] = [];
  for (const { directive, line } of draft.directives) {
    if (directive.kind === 'for') clients = directive.clients;
    else if (directive.kind === 'max_age') maxAgeS = directive.seconds;
    else if (directive.kind === 'error') errors.push(directive.error);
    else if (directive.kind === 'refusal') refusals.push(directive.refusal);
    else if (directive.kind === 'column') notNullColumns.push(directive.column);
    else if (directive.kind === 'param') {
      const { name, type, fallback } = directive;
      parameters.push({ name, type, fallback, line });
    }
  }
  return freeze({
    name: head.name,
    kind: head.of,
    file,
    line: draft.line,
    description: draft.description.join('\n').trim(),
    for: clients,
    parameters,
    parts: composeParts(draft.parts),
    isRead: isReading(draft),
    isKeyRequired: has(draft, 'key'),
    maxAgeS,
    errors,
    refusals,
    notNullColumns,
  });
}

function composeParts(parts: readonly DraftPart[]): readonly Part[] {
  const marked = parts.findIndex(({ steps }) => steps.some(({ step }) => step.kind === 'answer'));
  const answer = marked < 0 ? parts.length - 1 : marked;
  return parts.map(({ line, checked: { sql, placeholders }, steps }, at) => {
    let step: string | null = null;
    let expect: Expect | null = null;
    for (const { step: one } of steps) {
      if (one.kind === 'step') step = one.name;
      else if (one.kind === 'expect') expect = one.expect;
    }
    return { sql, line, placeholders, step, expect, isAnswer: at === answer };
  });
}

function freeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
