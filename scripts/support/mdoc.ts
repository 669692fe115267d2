// Text with Markdown's code spans as lines of mdoc(7), the language of manual pages.

/** One item of a `.Bl -tag` list: its term, as macros have it, and sentences below it. */
export type Item = { readonly term: string; readonly sentences: readonly string[] };

/** A tagged list. Its terms are bold, like everything that is typed. */
export function renderList(items: readonly Item[]): string {
  const lines = items.flatMap(({ term, sentences }) => [
    `.It Cm ${escapeText(term)}`,
    ...sentences.map(renderSentence),
  ]);
  return ['.Bl -tag -width Ds', ...lines, '.El'].join('\n');
}

/** A sentence that begins with a capital, on separate lines: code spans are bold, and nothing in it is a macro. */
function renderSentence(sentence: string): string {
  const text = sentence
    .replace(/^[a-z]/, (letter) => letter.toUpperCase())
    .split('`')
    .map((part, index) => (index % 2 === 0 ? escapeText(part) : `\\fB${escapeCode(part)}\\fP`))
    .join('');
  return wrap(text)
    .map((line) => (/^[.']/.test(line) ? `\\&${line}` : line))
    .join('\n');
}

const widest = 78;

function wrap(text: string): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > widest) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

/** Prose; `name()` is no function of C here, for which mandoc takes it. */
const escapeText = (text: string): string => text.replaceAll('\\', '\\e').replaceAll('()', '(\\&)');

/** Typed text must be printed as it is typed. Elsewhere roff changes some characters. */
const escapeCode = (text: string): string =>
  escapeText(text).replace(/['^~-]/g, (sign) => typed[sign] ?? sign);

const typed: Readonly<Record<string, string>> = {
  "'": '\\(aq',
  '^': '\\(ha',
  '~': '\\(ti',
  '-': '\\-',
};
