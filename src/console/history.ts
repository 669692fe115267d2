// The statements that were run from this page. They may hold personal data, so the page alone keeps them, until it is closed or loaded again.
import { button, element, find } from './elements.ts';

const most = 100;
/** The name under which earlier versions kept statements in the browser. */
const formerKey = 'dbhttpd.history';

/** A statement that was run. */
export type Entry = { readonly sql: string; readonly section: string };

/** The list of what was run. */
export type History = { readonly note: (entry: Entry) => void; readonly clear: () => void };

/** @param choose called with an entry that the reader chooses */
export function openHistory(choose: (entry: Entry) => void): History {
  const clear = find('history-clear', HTMLButtonElement);
  const list = find('history-list', HTMLElement);
  let entries: readonly Entry[] = [];
  const show = (next: readonly Entry[]) => {
    entries = next;
    clear.disabled = entries.length === 0;
    const items = entries.map((entry) =>
      element(
        'li',
        {},
        button(entry.sql, { class: 'long' }, () => choose(entry)),
      ),
    );
    const hint = element('li', { class: 'note' }, 'Nothing has been run yet.');
    list.replaceChildren(...(items.length === 0 ? [hint] : items));
  };
  clear.addEventListener('click', () => show([]));
  localStorage.removeItem(formerKey);
  show([]);
  return {
    note: (entry) => {
      const others = entries.filter(
        ({ sql, section }) => sql !== entry.sql || section !== entry.section,
      );
      show([entry, ...others].slice(0, most));
    },
    clear: () => show([]),
  };
}
