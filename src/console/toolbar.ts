// The tools of the page: keyboard shortcuts, the theme, and the token if the instance wants one.
import { closer, element, find, openDialog, setText } from './elements.ts';

/** A key, its meaning in words, and its action. */
export type Shortcut = {
  readonly key: string;
  readonly meaning: string;
  readonly act: () => void;
};

const keysEntry = 'dbhttpd.keys';

/** Listens for the keys, except in text fields. Readers can switch them off, since speech input may press keys by mistake (WCAG 2.1.4). */
export function startKeys(shortcuts: readonly Shortcut[], help: HTMLButtonElement): void {
  const areOn = () => localStorage.getItem(keysEntry) !== 'off';
  const showHelp = () => {
    const toggle = element('input', { type: 'checkbox', id: 'keys-on' });
    toggle.checked = areOn();
    toggle.addEventListener('change', () => {
      localStorage.setItem(keysEntry, toggle.checked ? 'on' : 'off');
    });
    const rows = [
      ...shortcuts.map(({ key, meaning }) => [key, meaning] as const),
      ['?', 'this list'] as const,
      ['Ctrl Enter', 'in the query: run it'] as const,
      ['Ctrl Shift Enter', 'in the query: explain it'] as const,
      ['← →', 'in a chart: show a moment in all three'] as const,
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
      element('p', {}, element('label', { class: 'check' }, toggle, ' Enable these keys')),
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

const themes = ['system', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];

const themeEntry = 'dbhttpd.theme';

/** Makes a button switch between the themes. @param onChange called after the button or the system changed the colours */
export function startTheme(switcher: HTMLButtonElement, onChange: () => void): void {
  const apply = (theme: Theme) => {
    document.documentElement.dataset.theme = theme;
    switcher.replaceChildren(element('span', { class: 'roomy' }, 'Theme: '), theme);
    switcher.setAttribute('aria-label', `Theme: ${theme}`);
  };
  let current = readTheme();
  apply(current);
  switcher.addEventListener('click', () => {
    current = themes[(themes.indexOf(current) + 1) % themes.length] as Theme;
    localStorage.setItem(themeEntry, current);
    apply(current);
    onChange();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', onChange);
}

/** A colour of the style sheet in the current theme. */
export function readColour(name: string): string {
  const probe = element('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function readTheme(): Theme {
  const kept = localStorage.getItem(themeEntry);
  return themes.find((theme) => theme === kept) ?? 'system';
}

const tokenEntry = 'dbhttpd.token';
/** A header carries no others. */
const tokenPattern = /^[!-~]+$/;

/** The token and its form. */
export type TokenForm = {
  readonly read: () => string | null;
  /** The gateway wants a token, or rejected this one. */
  readonly wanted: (sent: string | null) => void;
  /** The client of the token, or of requests without one, may not look at the instance. */
  readonly isNotEnough: () => void;
  readonly accepted: () => void;
};

/** @param onGiven called when the token was set or removed */
export function startToken(onGiven: () => void): TokenForm {
  const form = find('token', HTMLFormElement);
  const field = find('token-field', HTMLInputElement);
  const text = find('token-text', HTMLElement);
  const forget = find('forget', HTMLButtonElement);
  const read = () => sessionStorage.getItem(tokenEntry);
  const showForget = () => {
    forget.hidden = read() === null;
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const token = field.value.trim();
    field.value = '';
    if (token === '') return;
    if (!tokenPattern.test(token)) {
      setText(text, 'This is no token: it has a space, or a character that is not ASCII.');
      return;
    }
    sessionStorage.setItem(tokenEntry, token);
    onGiven();
  });
  forget.addEventListener('click', () => {
    sessionStorage.removeItem(tokenEntry);
    showForget();
    onGiven();
  });
  showForget();
  return {
    read,
    wanted: (sent) => {
      // A newer token has not been tried yet.
      if (sent !== read()) return;
      const isRefused = sent !== null;
      sessionStorage.removeItem(tokenEntry);
      showForget();
      if (isRefused) setText(text, 'This token was not accepted.');
      else if (form.hidden) setText(text, 'This instance needs a token.');
      if (form.hidden) {
        form.hidden = false;
        field.focus();
      }
    },
    isNotEnough: () => {
      const hasToken = read() !== null;
      const why = hasToken
        ? 'The client of this token lacks the permission observe, so it sees only its own requests.'
        : 'Only a client with the permission observe sees the state of this instance.';
      setText(text, `${why} To see more, give the token of one that has it.`);
      showForget();
      if (!form.hidden) return;
      form.hidden = false;
      if (!hasToken) field.focus();
    },
    accepted: () => {
      form.hidden = true;
      setText(text, '');
      showForget();
    },
  };
}
