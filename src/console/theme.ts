// Light, dark, or as the system is: what was chosen is kept in this browser.
import { element } from './elements.ts';

const themes = ['system', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];

const key = 'dbhttpd.theme';

/** Lets a button go through the themes. @param onChange called when colours have changed, by the button or the system */
export function startTheme(switcher: HTMLButtonElement, onChange: () => void): void {
  const apply = (theme: Theme) => {
    document.documentElement.dataset.theme = theme;
    switcher.replaceChildren(element('span', { class: 'wide' }, 'Theme: '), theme);
    switcher.setAttribute('aria-label', `Theme: ${theme}`);
  };
  let current = read();
  apply(current);
  switcher.addEventListener('click', () => {
    current = themes[(themes.indexOf(current) + 1) % themes.length] as Theme;
    localStorage.setItem(key, current);
    apply(current);
    onChange();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', onChange);
}

/** A colour of the style sheet, as the theme has it now. */
export function readColour(name: string): string {
  const probe = element('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function read(): Theme {
  const kept = localStorage.getItem(key);
  return themes.find((theme) => theme === kept) ?? 'system';
}
