// Elements of the page, its parts, and dialogs. Their text is set as text, never as HTML: most of it comes from strangers.

/** The contents of an element. */
export type Content = Node | string | null;

type Attributes = Readonly<Record<string, string | number | boolean>>;

/** Creates an element. The value true makes an empty attribute, false makes none. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...contents: readonly Content[]
): HTMLElementTagNameMap[Tag] {
  const created = document.createElement(tag);
  setAttributes(created, attributes);
  for (const content of contents) if (content !== null) created.append(content);
  return created;
}

/** Creates an element of a drawing, with its attributes. */
export function drawn<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...contents: readonly Node[]
): SVGElementTagNameMap[Tag] {
  const created = document.createElementNS('http://www.w3.org/2000/svg', tag);
  setAttributes(created, attributes);
  created.append(...contents);
  return created;
}

/** Creates a button. */
export function button(
  label: string,
  attributes: Attributes,
  onPress: (pressed: HTMLButtonElement) => void,
): HTMLButtonElement {
  const created = element('button', { type: 'button', ...attributes }, label);
  created.addEventListener('click', () => onPress(created));
  return created;
}

/** Returns the element with this id. Throws if there is none in the place. */
export function find<Kind extends HTMLElement>(
  id: string,
  kind: new () => Kind,
  place: ParentNode = document,
): Kind {
  const found = place.querySelector(`#${id}`);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

/** Sets a text if it differs: an unchanged text is not announced again, and keeps its selection. */
export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

function setAttributes(target: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) target.setAttribute(name, value === true ? '' : String(value));
  }
}

/** One part of the page. A part that fails keeps its old contents. */
export type Part = {
  readonly section: HTMLElement;
  readonly body: HTMLElement;
  /** Shows the contents. @param status a few words beside the title */
  readonly shown: (status: string) => void;
  /** Says that there is nothing to show, which is no failure. */
  readonly empty: (text: string) => void;
  readonly failed: (text: string) => void;
};

/** Opens the part of the page with this id, as loading. */
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

/** Opens a dialog. Closing removes it from the page. */
export function openDialog(title: string, ...contents: readonly Content[]): HTMLDialogElement {
  const heading = element('h2', { id: 'dialog-title' }, title);
  const dialog = element('dialog', { 'aria-labelledby': 'dialog-title' }, heading, ...contents);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A button that closes a dialog. */
export function closer(label: string, dialog: () => HTMLDialogElement): HTMLButtonElement {
  return button(label, {}, () => dialog().close());
}

/** Asks for confirmation. The focus is on the careful answer. */
export function askToConfirm(
  title: string,
  contents: readonly Content[],
  answers: { readonly yes: string; readonly no: string },
): Promise<boolean> {
  return new Promise((resolve) => {
    let isYes = false;
    const yes = button(answers.yes, { class: 'danger' }, () => {
      isYes = true;
      dialog.close();
    });
    const no = button(answers.no, { autofocus: true }, () => dialog.close());
    const dialog = openDialog(title, ...contents, element('p', { class: 'answers' }, no, yes));
    dialog.addEventListener('close', () => resolve(isYes));
  });
}
