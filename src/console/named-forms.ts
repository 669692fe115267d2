// The forms of named statements, one of which is shown. The others keep their values, their keys and their results.
import { find } from './elements.ts';
import type { CallableNamed } from './named.ts';
import { createNamedForm, type FormUse } from './named-form.ts';

/** The forms. */
export type NamedForms = {
  /** Shows the form of a statement, unless it is shown already. */
  readonly open: (statement: CallableNamed) => void;
  readonly close: () => void;
  /** Closes and drops all: another client must not see them. */
  readonly forget: () => void;
};

/** Opens none. */
export function openNamedForms(use: FormUse): NamedForms {
  const place = find('call-place', HTMLElement);
  /** By the text of the statement: if the file has changed, its fields are others. */
  const forms = new Map<string, HTMLElement>();
  const formOf = (statement: CallableNamed) => {
    const text = JSON.stringify(statement);
    const form = forms.get(text) ?? createNamedForm(statement, use);
    forms.set(text, form);
    return form;
  };
  const close = () => {
    place.hidden = true;
    place.replaceChildren();
  };
  return {
    open: (statement) => {
      const form = formOf(statement);
      if (form.parentNode === place) return;
      place.hidden = false;
      place.replaceChildren(form);
      form.scrollIntoView({ block: 'nearest' });
      form.querySelector<HTMLElement>('input, select, textarea, [type=submit]')?.focus();
    },
    close,
    forget: () => {
      close();
      forms.clear();
    },
  };
}
