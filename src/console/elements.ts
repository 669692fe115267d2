// Elements of the page. What they say is set as text, never as HTML: most of it was written by strangers.

/** What stands in an element. */
export type Content = Node | string | null;

type Attributes = Readonly<Record<string, string | number | boolean>>;

/** Creates an element; an attribute that is true is empty, one that is false is left out. */
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

/** The element of the page with this id. Throws where there is none: the page and its program belong together. */
export function find<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

/** Sets a text, where it is another one: what has not changed is not announced again, nor taken out of a selection. */
export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

function setAttributes(target: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) target.setAttribute(name, value === true ? '' : String(value));
  }
}
