// The form that calls one named statement: a field for each parameter, and the result.
import type { Ask, AskError } from './ask.ts';
import { copyText } from './copy.ts';
import { askToConfirm, button, element, find, setText } from './elements.ts';
import { createField, createUuid, describeField, type Field } from './fields.ts';
import { formatCurl } from './format.ts';
import type { CallableNamed } from './named.ts';
import { Output, openTasks } from './output.ts';
import { readNamedReply } from './reply.ts';

/** How forms ask. */
export type FormUse = {
  readonly ask: Ask;
  readonly needsToken: () => boolean;
  /** Called after each call. */
  readonly called: () => void;
};

/** Creates the form, which is not in the page yet. It keeps its values and its result while it is not shown, and its call goes on. */
export function createNamedForm(
  statement: CallableNamed,
  { ask, needsToken, called }: FormUse,
): HTMLElement {
  const { name, kind, read_only: isRead } = statement;
  const section = cloneSection();
  const output = new Output({
    message: find('call-notice', HTMLElement, section),
    result: find('call-result', HTMLElement, section),
    raw: find('call-raw', HTMLButtonElement, section),
  });
  const fields = openFields(statement);
  const tasks = openTasks({
    run: find('call-run', HTMLButtonElement, section),
    stop: find('call-stop', HTMLButtonElement, section),
    output,
    failed: fields.explain,
  });
  const call = async () => {
    const body = fields.body();
    fields.explain(null);
    if (!isRead && !(await confirmCall(name, body))) return;
    await tasks.start(async (signal) => {
      const startedAt = performance.now();
      output.begin();
      const key = fields.useKey(body);
      const asked = { method: 'POST', body, signal, ...(key !== null && { key }) };
      const response = await ask(`/v1/named/${name}`, asked);
      output.finish(await readNamedReply(response, kind), response, performance.now() - startedAt);
    });
    called();
  };
  const copyCurl = async () => {
    const place = { origin: window.location.origin, needsToken: needsToken() };
    const body = fields.body();
    const command = formatCurl(place, `/v1/named/${name}`, body, fields.keyFor(body));
    if (await copyText('The same with curl', command)) output.report('The command was copied.');
  };
  setText(find('call-title', HTMLElement, section), `Try ${name}`);
  setText(find('call-about', HTMLElement, section), statement.description);
  find('call-fields', HTMLElement, section).append(...fields.elements);
  const form = find('call-form', HTMLFormElement, section);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void call();
  });
  find('call-curl', HTMLButtonElement, section).addEventListener('click', () => void copyCurl());
  return section;
}

function cloneSection(): HTMLElement {
  const { content } = find('call-template', HTMLTemplateElement);
  return find('call', HTMLElement, document.importNode(content, true));
}

/** The fields of one statement. */
type Fields = {
  readonly elements: readonly HTMLElement[];
  readonly body: () => string;
  /** The Idempotency-Key of a call with this body; null: the statement needs none. */
  readonly keyFor: (body: string) => string | null;
  /** The same, for a call that is sent. */
  readonly useKey: (body: string) => string | null;
  /** Shows a failure at its parameter; null: there is none. */
  readonly explain: (error: AskError | null) => void;
};

function openFields(statement: CallableNamed): Fields {
  const { properties, required = [] } = statement.parameters;
  const fields = Object.entries(properties).map(([name, schema]) => {
    const isRequired = required.includes(name);
    const [id, aboutId] = [`param-${name}`, `param-${name}-about`];
    const attributes = { id, 'aria-describedby': aboutId, 'aria-label': name };
    const field = createField(schema, isRequired, attributes);
    const fault = element('span', { class: 'fault' });
    const about = element('span', { id: aboutId, class: 'note' }, fault);
    about.append(describeField(schema, isRequired));
    const label = element('label', { for: id }, name, isRequired ? ' *' : null);
    return {
      name,
      field,
      fault,
      row: element('div', { class: 'param' }, label, field.element, about),
    };
  });
  const key = statement.key_required ? openKey() : null;
  return {
    elements: [...fields.map(({ row }) => row), ...(key === null ? [] : [key.row])],
    body: () => `{"params":{${fields.flatMap(memberOf).join(',')}}}`,
    keyFor: (body) => key?.keyFor(body) ?? null,
    useKey: (body) => key?.use(body) ?? null,
    explain: (error) => {
      const refused = error?.problem.parameter;
      for (const { name, field, fault } of fields) {
        const isRefused = name === refused;
        const input = inputOf(field);
        setText(fault, isRefused ? `${error?.message ?? ''} ` : '');
        if (isRefused) input.setAttribute('aria-invalid', 'true');
        else input.removeAttribute('aria-invalid');
        if (isRefused) input.focus();
      }
    },
  };
}

function memberOf({ name, field }: { readonly name: string; readonly field: Field }): string[] {
  const value = field.read();
  return value === undefined ? [] : [`${JSON.stringify(name)}:${value}`];
}

function inputOf({ element: shown }: Field): HTMLElement {
  return shown.matches('span') ? (shown.querySelector<HTMLElement>('input') ?? shown) : shown;
}

/** The key of a write. The same key executes nothing again, so a new call needs a new one. */
function openKey() {
  const input = element('input', {
    id: 'call-key',
    type: 'text',
    required: true,
    pattern: '[!-~]{1,255}',
    title: 'At most 255 characters of ASCII, no spaces',
    'aria-describedby': 'call-key-about',
    spellcheck: 'false',
    autocomplete: 'off',
  });
  let used: { readonly key: string; readonly body: string } | null = null;
  const renew = () => {
    input.value = createUuid();
  };
  renew();
  const text =
    'The statement is executed once for each key: a repetition gets the first reply. Other values get a new key.';
  const row = element(
    'div',
    { class: 'param' },
    element('label', { for: 'call-key' }, 'Idempotency-Key'),
    element(
      'span',
      { class: 'with-button' },
      input,
      button('New', { 'aria-label': 'New key' }, renew),
    ),
    element('span', { id: 'call-key-about', class: 'note' }, text),
  );
  // Other values are another request, which needs another key.
  const keyFor = (body: string) => {
    if (used?.key === input.value && used.body !== body) renew();
    return input.value;
  };
  return {
    row,
    keyFor,
    use: (body: string) => {
      used = { key: keyFor(body), body };
      return used.key;
    },
  };
}

function confirmCall(name: string, body: string): Promise<boolean> {
  return askToConfirm(
    `Call ${name}?`,
    [
      element('pre', { tabindex: 0, 'aria-label': 'Its parameters' }, body),
      element('p', {}, 'This statement writes to the database.'),
    ],
    { yes: 'Call it', no: 'Cancel' },
  );
}
