// The tables of a section, each with its columns. A table's rows and a column's name go into the query pane.
import { type Ask, type AskError, asAskError } from './ask.ts';
import { button, element, find, openPart, setText } from './elements.ts';
import { formatCount, formatShort } from './format.ts';

const timeoutMs = 10_000;

type Grid = { readonly rows: readonly (readonly unknown[])[] };
type List = Grid & { readonly sections: readonly string[] };
type Table = {
  readonly kind: string;
  readonly comment: string;
  readonly estimated_rows: number | null;
  readonly primary_key: readonly string[] | null;
  readonly columns: Grid;
  readonly indexes: Grid;
  readonly foreign_keys: Grid;
};

/** The query pane, as the tables use it. */
export type TablesUse = {
  /** '': the first section. */
  readonly section: () => string;
  readonly open: (sql: string) => void;
  readonly insert: (word: string) => void;
  readonly offer: (sections: readonly string[]) => void;
};

/** The part of tables. */
export type Tables = {
  /** Asks for the list, unless it is the list of the section already. */
  readonly load: () => void;
  /** The next `load` asks in any case: another client may see other tables. */
  readonly forget: () => void;
};

/** The list of a section, and what asks for more of it. */
type Shown = {
  readonly names: readonly (readonly [name: string, kind: string])[];
  readonly read: Read;
};

/** Opens the part, which asks for nothing before `load`. */
export function openTables(ask: Ask, use: TablesUse): Tables {
  const part = openPart('tables');
  const filter = element('input', {
    type: 'search',
    placeholder: 'Filter',
    'aria-label': 'Show tables whose names contain',
  });
  const list = element('ul', { class: 'tables', tabindex: 0, 'aria-label': 'Tables' });
  let shown: Shown = { names: [], read: createRead(ask, '') };
  /** The load whose answer counts, until a later one begins. */
  let current: { readonly section: string } | null = null;

  const render = () => {
    const wanted = filter.value.trim().toLowerCase();
    const found = shown.names.filter(([name]) => name.toLowerCase().includes(wanted));
    list.replaceChildren(...found.map(([name, kind]) => createEntry(name, kind, shown.read, use)));
    if (shown.names.length === 0) part.empty('There are no tables here.');
    else part.shown(formatCount(found.length));
  };
  const fail = ({ message, problem }: AskError) => {
    if (problem.missing === undefined) {
      part.failed(message);
      return;
    }
    filter.disabled = true;
    part.empty(`Not for this client: it lacks the permission ${problem.missing}.`);
  };
  const load = async (section: string) => {
    const own = { section };
    current = own;
    const read = createRead(ask, section);
    try {
      const { rows, sections } = await read<List>('');
      if (current !== own) return;
      use.offer(sections);
      current = { section: use.section() };
      shown = { names: rows.map(([name, kind]) => [String(name), String(kind)]), read };
      filter.disabled = false;
      render();
    } catch (cause) {
      if (current !== own) return;
      current = null;
      fail(asAskError(cause));
    }
  };
  filter.addEventListener('input', render);
  find('tables-controls', HTMLElement).append(
    filter,
    button('Reload', {}, () => void load(use.section())),
  );
  part.body.append(list);
  return {
    load: () => {
      if (current?.section !== use.section()) void load(use.section());
    },
    forget: () => {
      current = null;
      shown = { names: [], read: createRead(ask, '') };
      list.replaceChildren();
      part.empty('');
      use.offer([]);
    },
  };
}

type Read = <Reply>(path: string) => Promise<Reply>;

/** Asks for the tables of one section. @param section '': the first */
function createRead(ask: Ask, section: string): Read {
  const query = section === '' ? '' : `?section=${encodeURIComponent(section)}`;
  return async <Reply>(path: string) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await ask(`/v1/tables${path}${query}`, { signal });
    return (await response.json()) as Reply;
  };
}

/** A table's name, which shows its columns when it is pressed. */
function createEntry(name: string, kind: string, read: Read, use: TablesUse): HTMLElement {
  const place = element('div', { class: 'columns', hidden: true });
  const open = async (pressed: HTMLButtonElement) => {
    place.hidden = !place.hidden;
    pressed.setAttribute('aria-expanded', String(!place.hidden));
    if (place.hidden || place.dataset.has === 'columns') return;
    try {
      const table = await read<Table>(`/${encodeURIComponent(name)}`);
      place.replaceChildren(...describe(name, table, use));
      place.dataset.has = 'columns';
    } catch (cause) {
      setText(place, asAskError(cause).message);
    }
  };
  const toggle = button(name, { class: 'table', 'aria-expanded': 'false' }, (it) => void open(it));
  const mark = kind === 'view' ? element('span', { class: 'type' }, 'view') : null;
  return element('li', {}, toggle, mark, place);
}

function describe(
  name: string,
  { comment, estimated_rows: estimate, primary_key: key, columns, indexes, foreign_keys }: Table,
  use: TablesUse,
): readonly HTMLElement[] {
  const references = new Map(
    foreign_keys.rows.flatMap(([, own, table, others]) =>
      (own as string[]).map((column, at) => [column, `${table}.${(others as string[])[at]}`]),
    ),
  );
  const items = columns.rows.map(([column, type, isNullable, initial, extra, text]) => {
    const word = String(column);
    const target = references.get(word);
    const notes = [
      ...(key?.includes(word) ? ['key'] : []),
      ...(isNullable === true ? [] : ['not null']),
      ...(initial === null ? [] : [`default ${initial}`]),
      ...(extra === '' ? [] : [String(extra)]),
      ...(target === undefined ? [] : [`→ ${target}`]),
      ...(text === '' ? [] : [`“${text}”`]),
    ];
    return element(
      'li',
      {},
      button(word, { class: 'column', title: 'Write it into the query' }, () =>
        use.insert(quoteName(word)),
      ),
      element('span', { class: 'type' }, String(type)),
      element('span', { class: 'note' }, notes.join(', ')),
    );
  });
  const others = indexes.rows
    .filter(([index]) => index !== 'PRIMARY')
    .map(
      ([, isUnique, parts]) =>
        `${isUnique ? 'unique' : 'index'} (${(parts as string[]).join(', ')})`,
    );
  const rows = estimate === null ? [] : [`about ${formatShort(estimate)} rows`];
  const facts = [...(comment === '' ? [] : [`“${comment}”`]), ...rows, ...others];
  return [
    element('ul', {}, ...items),
    element('p', { class: 'note' }, facts.join(' · ')),
    button('First rows', {}, () => use.open(`select * from ${quoteName(name)} limit 100`)),
  ];
}

/** A name as SQL. Every name is quoted, since any may be a reserved word. */
function quoteName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}
