// Patterns of RE2, which take linear time whatever the pattern and the text. The only user of re2js.
import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';

/** Whether a whole text matches. */
export type Pattern = (text: string) => boolean;

type Module = { readonly RE2JS: typeof RE2JS };

/** Loads re2js at the first pattern: that takes 15 ms of the processor, and most instances have no pattern. */
const load = createRequire(import.meta.url);

/** Compiles a pattern. @returns a text for people if it is none */
export function compilePattern(source: string): Pattern | string {
  const { RE2JS } = load('re2js') as Module;
  try {
    const compiled = RE2JS.compile(source);
    return (text) => compiled.matches(text);
  } catch (cause) {
    if (!(cause instanceof Error)) throw cause;
    return cause.message.replace(/^error parsing regexp: /, '');
  }
}
