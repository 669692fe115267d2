// The rows of one result as a table. Only the visible rows are in the page, so that a hundred thousand rows scroll like ten.

import { button, closer, element, openDialog, setText } from './elements.ts';
import { Digits, type Exact, parseExact, writeExact } from './exact-json.ts';
import { formatBytes, formatCount } from './format.ts';

/** A column as `/v1/query` describes it. */
export type ResultColumn = {
  readonly name: string;
  readonly type: string;
  readonly unsigned?: boolean;
  readonly encoding?: string;
};

/** A result. Its rows remain lines of JSON, which are parsed only when they become visible. */
export type Result = {
  readonly columns: readonly ResultColumn[];
  readonly lines: readonly string[];
  /** It is one row, and not a list of rows. */
  readonly isObject?: boolean;
};

const rowPixels = 26;
const rowsBeyond = 10;
const sampled = 200;
const [minChars, maxChars] = [4, 48];
/** The longest text in a cell of the table. A row by itself shows all of it. */
const maxCellChars = 300;
const lineBreak = /\r\n|[\n\r\u2028\u2029]/g;

const numericTypes =
  /^(?:TINYINT|SMALLINT|MEDIUMINT|INT|INTEGER|BIGINT|DECIMAL|FLOAT|DOUBLE|YEAR|BIT)$/;

/** Creates the table of a result. `grow` shows rows that were added since. */
export function createResultTable(result: Result, caption: string) {
  const { columns } = result;
  const kinds = columns.map(kindOf);
  const group = element('colgroup', {}, element('col'), ...columns.map(() => element('col')));
  const above = element(
    'tr',
    { class: 'space', 'aria-hidden': 'true' },
    element('td', { colspan: columns.length + 1 }),
  );
  const below = element(
    'tr',
    { class: 'space', 'aria-hidden': 'true' },
    element('td', { colspan: columns.length + 1 }),
  );
  const body = element('tbody', {}, above, below);
  const table = element(
    'table',
    { class: 'rows' },
    element('caption', { class: 'unseen' }, caption),
    group,
    element(
      'thead',
      {},
      element(
        'tr',
        {},
        element('th', { scope: 'col', class: 'number' }, '#'),
        ...columns.map(headerOf),
      ),
    ),
    body,
  );
  const frame = element(
    'div',
    {
      class: 'frame rows',
      tabindex: 0,
      role: 'region',
      'aria-label': `${caption}. Enter shows rows one by one.`,
    },
    table,
  );
  /** The rows that are in the page, by their place: a long one takes time to make. */
  let shown: ReadonlyMap<number, HTMLElement> = new Map();
  const setWidths = openWidths(group, table, result);

  const firstSeen = () =>
    Math.min(result.lines.length - 1, Math.floor(frame.scrollTop / rowPixels));
  const render = () => {
    const { length } = result.lines;
    const from = Math.max(0, Math.floor(frame.scrollTop / rowPixels) - rowsBeyond);
    const seen = Math.ceil(frame.clientHeight / rowPixels);
    const to = Math.min(length, from + seen + 2 * rowsBeyond);
    const rows = new Map<number, HTMLElement>();
    for (let at = from; at < to; at += 1) {
      const line = result.lines[at] as string;
      rows.set(at, shown.get(at) ?? createRow(at, line, kinds, openRow));
    }
    const isSame = rows.size === shown.size && shown.has(from) && shown.has(to - 1);
    if (!isSame) {
      body.replaceChildren(above, ...rows.values(), below);
    }
    shown = rows;
    (above.firstElementChild as HTMLElement).style.blockSize = `${from * rowPixels}px`;
    (below.firstElementChild as HTMLElement).style.blockSize = `${(length - to) * rowPixels}px`;
    above.hidden = from === 0;
    below.hidden = to === length;
    table.setAttribute('aria-rowcount', String(length + 1));
  };
  const openRow = (at: number) => showRecord(result, at);
  frame.addEventListener('scroll', () => requestAnimationFrame(render));
  frame.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && event.target === frame && result.lines.length > 0)
      openRow(firstSeen());
  });
  new ResizeObserver(render).observe(frame);
  return {
    frame,
    grow: () => {
      setWidths();
      render();
    },
  };
}

type Kind = 'number' | 'binary' | 'text';

function kindOf({ type, encoding }: ResultColumn): Kind {
  if (encoding === 'base64') return 'binary';
  return numericTypes.test(type) ? 'number' : 'text';
}

function headerOf(column: ResultColumn): HTMLElement {
  const { name, type, unsigned } = column;
  const words = unsigned === true ? `${type} UNSIGNED` : type;
  return element(
    'th',
    { scope: 'col', class: kindOf(column), title: `${name}, ${words}` },
    element('span', { class: 'name' }, name === '' ? '(no name)' : name),
    element('span', { class: 'type' }, words),
  );
}

/**
 * Returns a function that sets the widths of columns. The first rows decide them, so that they do not move during scrolling. Each row is
 * measured once.
 */
function openWidths(group: HTMLElement, table: HTMLElement, { columns, lines }: Result) {
  const kinds = columns.map(kindOf);
  const widths = columns.map(({ name, type, unsigned }) =>
    Math.max(minChars, name.length, type.length * 0.75 + (unsigned === true ? 7 : 0)),
  );
  let measured = 0;
  const measure = (line: string) => {
    const cells = readCells(line);
    for (const [at, kind] of kinds.entries()) {
      widths[at] = Math.max(widths[at] as number, printed(cells[at] ?? null, kind).length);
    }
  };
  return () => {
    for (; measured < Math.min(sampled, lines.length); measured += 1) {
      measure(lines[measured] as string);
    }
    const ofNumber = Math.max(4, String(lines.length).length + 1) + 1;
    const all = [ofNumber, ...widths.map((width) => Math.min(maxChars, width) + 3)];
    for (const [at, width] of all.entries()) {
      (group.children[at] as HTMLElement).style.inlineSize = `${width}ch`;
    }
    table.style.inlineSize = `${all.reduce((total, width) => total + width, 0)}ch`;
  };
}

function createRow(
  at: number,
  line: string,
  kinds: readonly Kind[],
  open: (at: number) => void,
): HTMLElement {
  const number = button(
    String(at + 1),
    { tabindex: -1, 'aria-label': `Row ${at + 1}, show it` },
    () => open(at),
  );
  const cells = readCells(line);
  return element(
    'tr',
    { 'aria-rowindex': at + 2 },
    element('th', { scope: 'row', class: 'number' }, number),
    ...kinds.map((kind, index) => createCell('td', cells[index] ?? null, kind)),
  );
}

/** NULL looks different from text. */
function createCell(tag: 'td' | 'dd', value: Exact, kind: Kind): HTMLElement {
  if (value === null) return element(tag, { class: `${kind} null` }, 'NULL');
  const text = printed(value, kind);
  return element(tag, { class: kind }, tag === 'td' ? inOneLine(text) : text);
}

/** Rows of a table have the same height. */
function inOneLine(text: string): string {
  const end = text.length > maxCellChars ? '…' : '';
  return text.slice(0, maxCellChars).replace(lineBreak, '⏎') + end;
}

function readCells(line: string): readonly Exact[] {
  const row = parseExact(line);
  return Array.isArray(row) ? row : [];
}

const maxHex = 24;

function printed(value: Exact, kind: Kind): string {
  if (value === null) return 'NULL';
  if (value instanceof Digits) return value.text;
  if (typeof value !== 'string')
    return typeof value === 'boolean' ? String(value) : writeExact(value);
  return kind === 'binary' ? `0x${hexOf(value, maxHex)}` : value;
}

function hexOf(base64: string, most: number): string {
  const bytes = atob(base64.slice(0, Math.ceil((most + 1) / 3) * 4));
  const hex = [...bytes.slice(0, most)].map((byte) =>
    byte.charCodeAt(0).toString(16).padStart(2, '0'),
  );
  return `${hex.join('')}${bytes.length > most ? '…' : ''}`;
}

function bytesOf(base64: string): number {
  return (base64.length / 4) * 3 - (/={1,2}$/.exec(base64)?.[0].length ?? 0);
}

/** Shows one row with all its values in full. The keys left and right move to other rows. */
function showRecord(result: Result, first: number): void {
  let at = first;
  const title = element('p', { class: 'note', 'aria-live': 'polite' });
  const list = createRecord(result);
  const show = (step: number) => {
    at = Math.min(result.lines.length - 1, Math.max(0, at + step));
    setText(title, `Row ${formatCount(at + 1)} of ${formatCount(result.lines.length)}`);
    list.replaceChildren(...entriesOf(result, at));
  };
  show(0);
  const dialog: HTMLDialogElement = openDialog(
    'Row by row',
    title,
    list,
    element(
      'p',
      { class: 'answers' },
      button('Previous', {}, () => show(-1)),
      button('Next', {}, () => show(1)),
      closer('Close', () => dialog),
    ),
  );
  dialog.addEventListener('keydown', ({ key }) => {
    if (key === 'ArrowLeft') show(-1);
    if (key === 'ArrowRight') show(1);
  });
}

/** The first row, as names with their values in full. */
export function createRecord(result: Result): HTMLElement {
  const list = element('dl', { class: 'record', tabindex: 0 });
  list.replaceChildren(...(result.lines.length === 0 ? [] : entriesOf(result, 0)));
  return list;
}

function entriesOf({ columns, lines }: Result, at: number): readonly HTMLElement[] {
  const cells = readCells(lines[at] as string);
  return columns.flatMap((column, index) => {
    const kind = kindOf(column);
    const value = cells[index] ?? null;
    const type = element('span', { class: 'type' }, describeCell(column, kind, value));
    return [
      element('dt', {}, column.name, type),
      kind === 'binary' && typeof value === 'string'
        ? element('dd', { class: 'binary' }, `0x${hexOf(value, 1024)}`)
        : createCell('dd', value, kind),
    ];
  });
}

function describeCell({ type }: ResultColumn, kind: Kind, value: Exact): string {
  if (kind === 'binary' && typeof value === 'string')
    return `${type}, ${formatBytes(bytesOf(value))}`;
  return value === '' ? `${type} empty`.trim() : type;
}
