// Keys that lead to the parts of the page, and the list of them.
import { closer, openDialog } from './dialog.ts';
import { element } from './elements.ts';

/** A key, what it does in words, and doing it. */
export type Shortcut = {
  readonly key: string;
  readonly meaning: string;
  readonly act: () => void;
};

const storageKey = 'dbhttpd.keys';

/** Listens for them, except where somebody writes. They can be switched off: not everybody's keyboard is struck on purpose. */
export function startKeys(shortcuts: readonly Shortcut[], help: HTMLButtonElement): void {
  const areOn = () => localStorage.getItem(storageKey) !== 'off';
  const showHelp = () => {
    const toggle = element('input', { type: 'checkbox', id: 'keys-on' });
    toggle.checked = areOn();
    toggle.addEventListener('change', () => {
      localStorage.setItem(storageKey, toggle.checked ? 'on' : 'off');
    });
    const rows = [
      ...shortcuts.map(({ key, meaning }) => [key, meaning] as const),
      ['?', 'this list'] as const,
      ['Ctrl Enter', 'in the query: run it'] as const,
      ['← →', 'in a chart: look at a moment of all three'] as const,
      ['Enter', 'in a result: its rows one by one'] as const,
      ['Esc', 'close what is open'] as const,
    ].map(([key, meaning]) =>
      element(
        'tr',
        {},
        element('th', { scope: 'row' }, element('kbd', {}, key)),
        element('td', {}, meaning),
      ),
    );
    const dialog: HTMLDialogElement = openDialog(
      'Keys',
      element('table', { class: 'keys' }, element('tbody', {}, ...rows)),
      element('p', {}, element('label', { class: 'check' }, toggle, ' Single keys do this')),
      element(
        'p',
        { class: 'answers' },
        closer('Close', () => dialog),
      ),
    );
  };
  help.addEventListener('click', showHelp);
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
    if (document.querySelector('dialog[open]') !== null) return;
    if (event.key === '?') showHelp();
    const shortcut = areOn() ? shortcuts.find(({ key }) => key === event.key) : undefined;
    if (shortcut === undefined) return;
    event.preventDefault();
    shortcut.act();
  });
}

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLInputElement && target.type !== 'checkbox')
  );
}
