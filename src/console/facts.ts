// A dialog with all that is known of one thing.
import { closer, element, openDialog } from './elements.ts';

/** A name with its value; null, or an empty value: it is left out. */
export type Fact = readonly [name: string, value: string | null];

/** Opens the dialog. @param text a statement, which keeps its line breaks; null: there is none */
export function openFacts(title: string, text: string | null, facts: readonly Fact[]): void {
  const known = facts.filter(([, value]) => value !== null && value !== '');
  const dialog: HTMLDialogElement = openDialog(
    title,
    text === null ? null : element('pre', { tabindex: 0, 'aria-label': 'Statement' }, text),
    element(
      'dl',
      { class: 'record', tabindex: 0 },
      ...known.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]),
    ),
    element(
      'p',
      { class: 'answers' },
      closer('Close', () => dialog),
    ),
  );
}
