// A part of the page: what it says of itself while there is nothing to show, or nothing new.
import { element, setText } from './elements.ts';

/** One part. `shown` and `failed` may be called at any time; what was shown stays while a part fails. */
export type Part = {
  readonly section: HTMLElement;
  readonly body: HTMLElement;
  /** Something is there. @param status a few words beside the title */
  readonly shown: (status: string) => void;
  /** There is nothing to show, and that is how it should be. */
  readonly empty: (text: string) => void;
  readonly failed: (text: string) => void;
};

/** Takes the part of the page with this id; it is loading. */
export function openPart(id: string): Part {
  const section = document.getElementById(id);
  const body = section?.querySelector<HTMLElement>('.body');
  const status = section?.querySelector('.status');
  if (!section || !body || !status) throw new Error(`the page has no part ${id}`);
  const message = element('p', { class: 'message' }, 'Loading…');
  body.before(message);
  let hasShown = false;
  const enter = (state: 'loading' | 'shown' | 'empty' | 'failed', text: string) => {
    section.dataset.state = state;
    section.setAttribute('aria-busy', String(state === 'loading'));
    message.hidden = state === 'shown';
    hasShown ||= state === 'shown';
    body.hidden = state === 'empty' || !hasShown;
    setText(message, state === 'shown' ? '' : text);
    if (state !== 'failed') setText(status, state === 'shown' ? text : '');
  };
  enter('loading', 'Loading…');
  return {
    section,
    body,
    shown: (text) => enter('shown', text),
    empty: (text) => enter('empty', text),
    failed: (text) => enter('failed', text),
  };
}
