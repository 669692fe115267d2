// The conditions of a `jwt` line: `realm_access.roles: web-user`, several separated by commas.
import type { ClaimCondition } from '../clients/client.ts';

/** The conditions of a line, or what is wrong with it. */
export type ParsedConditions =
  | { readonly ok: true; readonly conditions: readonly ClaimCondition[] }
  | { readonly ok: false; readonly problem: string };

const bareSegment = /[^\s.:,;#=\\'"]+/y;
const bareValue = /[^\s,;#\\'"]+/y;
const singleQuoted = /'([^']+)'/y;
/** As in JSON. */
const doubleQuoted = /"(?:[^"\\]|\\.)+"/y;
const blanks = /\s*/y;
const end = /(?:\s+[;#].*)?$/y;

const wanted = 'must be `claim: value`, as in `realm_access.roles: web-user`';

/**
 * Parses the text after `jwt =`, with a comment that may follow it.
 *
 *     line      = condition { "," condition }
 *     condition = segment { "." segment } ":" word
 *
 * A segment or a word with other characters than its own is in quotes: single ones as they are, double ones as in JSON.
 */
export function parseConditions(text: string): ParsedConditions {
  const reader = new Reader(text);
  const conditions: ClaimCondition[] = [];
  do {
    const path: string[] = [];
    do {
      const segment = reader.word(bareSegment);
      if (segment === null) return { ok: false, problem: wanted };
      path.push(segment);
    } while (reader.skip('.'));
    if (!reader.skip(':')) {
      return {
        ok: false,
        problem: `${wanted}: quotes are needed around a name with \`:\` or \`.\``,
      };
    }
    const value = reader.word(bareValue);
    if (value === null) return { ok: false, problem: wanted };
    conditions.push(Object.freeze({ path: Object.freeze(path), value }));
  } while (reader.skip(','));
  if (reader.isAtEnd()) return { ok: true, conditions };
  return {
    ok: false,
    problem:
      'has text after a value: commas separate conditions, and quotes are needed around values other than words',
  };
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** A quoted or bare word. Null: there is none. */
  word(bare: RegExp): string | null {
    this.#take(blanks);
    const plain = this.#take(bare) ?? this.#take(singleQuoted)?.slice(1, -1);
    if (plain !== undefined) return plain;
    const quoted = this.#take(doubleQuoted);
    return quoted === undefined ? null : parseJsonText(quoted);
  }

  skip(mark: string): boolean {
    const from = this.#at;
    this.#take(blanks);
    if (this.#text.startsWith(mark, this.#at)) {
      this.#at += mark.length;
      return true;
    }
    this.#at = from;
    return false;
  }

  isAtEnd(): boolean {
    return this.#take(end) !== undefined;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [taken] = pattern.exec(this.#text) ?? [];
    if (taken !== undefined) this.#at += taken.length;
    return taken;
  }
}

function parseJsonText(text: string): string | null {
  try {
    return String(JSON.parse(text));
  } catch {
    return null;
  }
}
