// A table whose rows remain the same elements when their values change, so that focus, selection and scrolling survive.
import { element, setText } from './elements.ts';

/** A column. `show` fills a cell, which may have been filled before. */
export type Column<Row> = {
  readonly name: string;
  readonly title?: string;
  /** `number` aligns right; `text` may be long. */
  readonly kind?: 'number' | 'text' | 'action';
  /** A phone leaves the column out: the details of a row have it. */
  readonly isRest?: boolean;
  readonly show: (row: Row, cell: HTMLElement) => void;
};

/** A table in the page. */
export type Table<Row> = {
  readonly frame: HTMLElement;
  readonly headers: readonly HTMLTableCellElement[];
  readonly update: (rows: readonly Row[]) => void;
};

/** A cell that is its text. */
export function asText<Row>(text: (row: Row) => string): Column<Row>['show'] {
  return (row, cell) => setText(cell, text(row));
}

/** A text on one line, which is shown in full when it is pressed. */
export function asLongText<Row>(text: (row: Row) => string): Column<Row>['show'] {
  return (row, cell) => {
    let toggle = cell.firstElementChild;
    if (toggle === null) {
      const created = element('button', {
        type: 'button',
        class: 'long',
        'aria-expanded': 'false',
      });
      created.addEventListener('click', () => {
        const isOpen = created.getAttribute('aria-expanded') === 'true';
        created.setAttribute('aria-expanded', String(!isOpen));
      });
      cell.append(created);
      toggle = created;
    }
    setText(toggle, text(row));
  };
}

/** Creates a table. @param caption its contents, for screen readers */
export function createTable<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  keyOf: (row: Row) => string,
): Table<Row> {
  const classes = columns.map(
    ({ kind = 'plain', isRest = false }) => `${kind}${isRest ? ' rest' : ''}`,
  );
  const headers = columns.map(({ name, title }, at) =>
    element('th', { scope: 'col', class: classes[at] ?? '', ...(title && { title }) }, name),
  );
  const body = element('tbody');
  const frame = element(
    'div',
    { class: 'frame', tabindex: 0, role: 'region', 'aria-label': caption },
    element(
      'table',
      {},
      element('caption', { class: 'unseen' }, caption),
      element('thead', {}, element('tr', {}, ...headers)),
      body,
    ),
  );
  const known = new Map<string, HTMLTableRowElement>();
  const createRow = () => element('tr', {}, ...classes.map((one) => element('td', { class: one })));
  return {
    frame,
    headers,
    update: (rows) => {
      const left = new Set(known.keys());
      for (const [at, row] of rows.entries()) {
        const key = keyOf(row);
        const line = known.get(key) ?? createRow();
        known.set(key, line);
        left.delete(key);
        for (const [index, { show }] of columns.entries()) {
          show(row, line.cells[index] as HTMLElement);
        }
        // Moving an element would remove the focus from it.
        if (body.rows[at] !== line) body.insertBefore(line, body.rows[at] ?? null);
      }
      for (const key of left) {
        known.get(key)?.remove();
        known.delete(key);
      }
    },
  };
}
