// The statements that were run from this page, kept in this browser if its reader wants that.
import { button, element, find } from './elements.ts';

const key = 'dbhttpd.history';
const most = 100;

/** A statement that was run. */
export type Entry = { readonly sql: string; readonly section: string; readonly at: number };

/** @param choose called with an entry that the reader chooses. Returns a function that adds an entry. */
export function openHistory(choose: (entry: Entry) => void): (entry: Entry) => void {
  const keep = find('history-keep', HTMLInputElement);
  const clear = find('history-clear', HTMLButtonElement);
  const list = find('history-list', HTMLElement);
  const write = (entries: readonly Entry[]) => localStorage.setItem(key, JSON.stringify(entries));
  const render = () => {
    const entries = read();
    clear.disabled = (entries ?? []).length === 0;
    const items = (entries ?? []).map((entry) =>
      element(
        'li',
        {},
        button(entry.sql, { class: 'long' }, () => choose(entry)),
      ),
    );
    const hint = entries === null ? 'Nothing is kept.' : 'Nothing has been run yet.';
    list.replaceChildren(
      ...(items.length === 0 ? [element('li', { class: 'note' }, hint)] : items),
    );
  };
  keep.checked = read() !== null;
  keep.addEventListener('change', () => {
    if (keep.checked) write([]);
    else localStorage.removeItem(key);
    render();
  });
  clear.addEventListener('click', () => {
    write([]);
    render();
  });
  render();
  return (entry) => {
    const entries = read();
    if (entries === null) return;
    const others = entries.filter(
      ({ sql, section }) => sql !== entry.sql || section !== entry.section,
    );
    write([entry, ...others].slice(0, most));
    render();
  };
}

/** Null: the reader wants nothing kept. */
function read(): readonly Entry[] | null {
  const text = localStorage.getItem(key);
  if (text === null) return null;
  try {
    const entries: unknown = JSON.parse(text);
    return Array.isArray(entries) ? entries.filter(isEntry) : [];
  } catch {
    return [];
  }
}

function isEntry(value: unknown): value is Entry {
  return (
    typeof value === 'object' && value !== null && 'sql' in value && typeof value.sql === 'string'
  );
}
