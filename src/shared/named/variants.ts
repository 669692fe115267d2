// The variants of a SQL text: its choices replaced by SQL of the file.
import type { ParameterType, Placeholder } from './statement.ts';

/** The SQL for each choice of a text, by the name of its parameter. */
export type Choices = ReadonlyMap<string, string>;

/** A text without choices, and where its other parameters are. */
export type Variant = { readonly sql: string; readonly placeholders: readonly Placeholder[] };

/** Up to this many combinations, all are listed. Beyond it, each choice is listed once beside the first ones of the others. */
const maxCombinations = 64;

/** Lists the variants of a text: each choice is in one of them. There is one if the text has no choice. */
export function listVariants(
  placeholders: readonly Placeholder[],
  types: ReadonlyMap<string, ParameterType | null>,
): readonly Choices[] {
  const alternatives = new Map<string, readonly string[]>();
  for (const { name } of placeholders) {
    const type = types.get(name);
    if (type?.kind === 'choice')
      alternatives.set(
        name,
        type.choices.map(({ sql }) => sql),
      );
  }
  const all = [...alternatives];
  const combinations = all.reduce((count, [, texts]) => count * texts.length, 1);
  if (combinations > maxCombinations) {
    const first = all.map(([name, [text = '']]) => [name, text] as const);
    return all.flatMap(([name, texts]) => texts.map((text) => new Map([...first, [name, text]])));
  }
  return all.reduce<readonly Choices[]>(
    (found, [name, texts]) =>
      found.flatMap((choices) => texts.map((text) => new Map([...choices, [name, text]]))),
    [new Map()],
  );
}

/** Puts the choices into the text. Spaces keep them apart from what is around them. */
export function writeVariant(
  sql: string,
  placeholders: readonly Placeholder[],
  choices: Choices,
): Variant {
  const left: Placeholder[] = [];
  let out = '';
  let copied = 0;
  for (const { name, start, end } of placeholders) {
    out += sql.slice(copied, start);
    const chosen = choices.get(name);
    if (chosen === undefined) {
      // Directly behind a quote a colon begins no placeholder to the gateway's lexer.
      if (/['"`]$/.test(out)) out += ' ';
      left.push({ name, start: out.length, end: out.length + end - start });
      out += sql.slice(start, end);
    } else out += ` ${chosen} `;
    copied = end;
  }
  return { sql: out + sql.slice(copied), placeholders: left };
}
