// Writes the SQL of one part of a named statement. What does not depend on the values is done once for each variant of its choices.
import { type Analysis, analyse } from '../sql/analyse.ts';
import { endOfText } from '../sql/lexer.ts';
import { type Placement, placeLiteral } from '../sql/placement.ts';
import { onlyStatement } from '../sql/statements.ts';
import type { BuiltIns } from '../sql/vocabulary.ts';
import type { Parameter, Part, Placeholder } from './statement.ts';
import type { BoundValue } from './value-check.ts';
import { writeVariant } from './variants.ts';

/** The variants of a part that are kept. Statements with more combinations of their choices prepare some again. */
const maxVariants = 64;

/** Writes the SQL of one part. Prepares its variants as calls need them. */
export class PartWriter {
  readonly part: Part;
  readonly #parameters: readonly Parameter[];
  readonly #indexes: ReadonlyMap<string, number>;
  /** The indexes of its choices. */
  readonly #choices: readonly number[];
  readonly #variants = new Map<string, PreparedVariant>();

  constructor(part: Part, parameters: readonly Parameter[], indexes: ReadonlyMap<string, number>) {
    this.part = part;
    this.#parameters = parameters;
    this.#indexes = indexes;
    const used = new Set(part.placeholders.map(({ name }) => indexes.get(name) ?? -1));
    this.#choices = [...used].filter((index) => parameters[index]?.type.kind === 'choice');
  }

  /** The variant for the choices among the values. */
  variantFor(values: readonly BoundValue[], builtIns: BuiltIns): PreparedVariant {
    let key = String(builtIns);
    for (const index of this.#choices) key += ` ${labelOf(values[index])}`;
    const known = this.#variants.get(key);
    if (known !== undefined) return known;
    const choices = new Map<string, string>();
    for (const index of this.#choices) {
      const { name, type } = this.#parameters[index] as Parameter;
      const label = labelOf(values[index]);
      const all = type.kind === 'choice' ? type.choices : [];
      choices.set(name, all.find((choice) => choice.label === label)?.sql ?? '');
    }
    const { sql, placeholders } = writeVariant(this.part.sql, this.part.placeholders, choices);
    const variant = new PreparedVariant(sql, placeholders, this.#indexes, builtIns);
    if (this.#variants.size === maxVariants) this.#variants.clear();
    this.#variants.set(key, variant);
    return variant;
  }
}

function labelOf(value: BoundValue | undefined): string {
  return value?.kind === 'choice' ? value.label : '';
}

/** The place of a literal: its index, and what is around it. */
type Slot = {
  readonly index: number;
  readonly plain: Placement;
  readonly negative: Placement;
  /** The text after it, up to the next slot. */
  readonly rest: string;
};

/** A text without choices, cut at its placeholders, and analysed. */
class PreparedVariant {
  readonly #analysis: Analysis;
  readonly #beginning: string;
  readonly #slots: readonly Slot[];
  /** The bytes of the text around the literals, with everything that may separate them. */
  readonly #maxTextBytes: number;

  constructor(
    sql: string,
    placeholders: readonly Placeholder[],
    indexes: ReadonlyMap<string, number>,
    builtIns: BuiltIns,
  ) {
    this.#analysis = analyse(sql, builtIns);
    this.#beginning = sql.slice(0, placeholders[0]?.start);
    this.#slots = placeholders.map(({ name, start, end }, at) => ({
      index: indexes.get(name) ?? -1,
      plain: placeLiteral(sql, start, end, false),
      negative: placeLiteral(sql, start, end, true),
      rest: sql.slice(end, placeholders[at + 1]?.start),
    }));
    this.#maxTextBytes = Buffer.byteLength(sql) + 4 * placeholders.length;
  }

  /** The text with the literals, which are ASCII; null: it would be longer than `maxBytes`. */
  write(literals: readonly string[], maxBytes: number): string | null {
    let bytes = this.#maxTextBytes;
    for (const { index } of this.#slots) bytes += literals[index]?.length ?? 0;
    if (bytes > maxBytes) return null;
    let out = this.#beginning;
    for (const { index, plain, negative, rest } of this.#slots) {
      const literal = literals[index] ?? '';
      const { before, after } = literal.startsWith('-') ? negative : plain;
      out += before + literal + after + rest;
    }
    return out;
  }

  /** The same for any values: what a statement does does not depend on them. */
  analysisOf(sql: string): Analysis {
    const [{ facts }] = this.#analysis.readings;
    return { ...this.#analysis, sql, statements: onlyStatement(sql, endOfText(sql), facts) };
  }
}
