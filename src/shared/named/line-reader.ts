// Reads one line of a grammar from left to right.

/** Why a line does not follow the grammar. Its message is for people. The functions that read a line catch it. */
export class LineFault extends Error {}

/** A place in a line. Blanks are skipped before each piece that it takes. */
export class LineReader {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** The text that is left. */
  get rest(): string {
    return this.text.slice(this.at).trim();
  }

  /** Takes the text if it comes next. */
  take(text: string): boolean {
    this.#skipBlanks();
    if (!this.text.startsWith(text, this.at)) return false;
    this.at += text.length;
    return true;
  }

  /** Takes the text. @throws LineFault if something else comes next */
  expect(text: string, where: string): void {
    if (!this.take(text)) throw this.#unexpected(`\`${text}\` ${where}`);
  }

  /** Takes what the sticky pattern matches here; null: nothing. */
  match(pattern: RegExp): string | null {
    this.#skipBlanks();
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? null;
    if (found !== null) this.at += found.length;
    return found;
  }

  /** Takes what the sticky pattern matches here. @param wanted for the message @throws LineFault if it does not match */
  need(pattern: RegExp, wanted: string): string {
    const found = this.match(pattern);
    if (found === null) throw this.#unexpected(wanted);
    return found;
  }

  /** @throws LineFault unless the line ends here */
  end(after: string): void {
    if (this.rest !== '') throw this.#unexpected(`the end of the line after ${after}`);
  }

  #unexpected(wanted: string): LineFault {
    const found = this.rest;
    const shown = found === '' ? 'the line ends' : `there is ${JSON.stringify(found.slice(0, 40))}`;
    return new LineFault(`${shown} instead of ${wanted}`);
  }

  #skipBlanks(): void {
    while (this.text[this.at] === ' ' || this.text[this.at] === '\t') this.at += 1;
  }
}
