// Builds the fields of a form from the JSON Schemas of `/v1/named`, and turns what is typed into JSON without losing a digit.
import { button, element } from './elements.ts';

/** A JSON Schema, as far as it decides on a field. */
export type FieldSchema = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly (string | null)[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly description?: string;
  readonly contentEncoding?: string;
  readonly default?: unknown;
  readonly items?: FieldSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, FieldSchema>>;
};

/** A field, or several that make one value. */
export type Field = {
  readonly element: HTMLElement;
  /** JSON; undefined: nothing was entered, and the value is left out. */
  readonly read: () => string | undefined;
};

/** The beginning of the pattern by which the gateway describes a datetime. */
const datetimePattern = '^\\d{4}-\\d\\d-\\d\\d[ T]';
const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** A text of more characters gets several lines. */
const longText = 200;

/** Creates the field of a value. @param label its name, for screen readers, unless a label is beside it */
export function createField(
  schema: FieldSchema,
  isRequired: boolean,
  attributes: Readonly<Record<string, string>>,
): Field {
  const types = [schema.type ?? []].flat();
  if (schema.enum !== undefined || types.includes('boolean')) {
    return createSelect(schema, isRequired, attributes);
  }
  if (types.includes('array')) return createList(schema, isRequired, attributes);
  if (types.length === 0) return createJson(isRequired, attributes);
  if (types.includes('integer') || types.includes('number')) {
    return createNumber(schema, types.includes('integer'), isRequired, attributes);
  }
  return createText(schema, isRequired, attributes);
}

/** The bounds, the default, and what else a reader must know of a value; '' if there is nothing. */
export function describeField(schema: FieldSchema, isRequired: boolean): string {
  const { minimum, maximum, maxLength, maxItems, description, contentEncoding } = schema;
  const bounds =
    minimum === undefined && maximum === undefined ? '' : `${minimum ?? ''}..${maximum ?? ''}`;
  const parts = [
    bounds,
    maxLength === undefined ? '' : `at most ${maxLength} characters`,
    maxItems === undefined ? '' : `at most ${maxItems}`,
    contentEncoding ?? '',
    description ?? '',
    isRequired ? '' : `optional, ${JSON.stringify(schema.default ?? null)} if empty`,
  ];
  return parts.filter((part) => part !== '').join('; ');
}

function createSelect(
  schema: FieldSchema,
  isRequired: boolean,
  attributes: Readonly<Record<string, string>>,
): Field {
  const values = schema.enum?.filter((value) => value !== null) ?? ['true', 'false'];
  const select = element(
    'select',
    { ...attributes, required: isRequired },
    element('option', { value: '' }, isRequired ? 'Choose…' : String(schema.default ?? 'NULL')),
    // The default is the first option already.
    ...values
      .filter((value) => isRequired || schema.default === null || value !== String(schema.default))
      .map((value) => element('option', { value }, value)),
  );
  const isText = schema.enum !== undefined;
  const read = () => {
    if (select.value === '') return undefined;
    return isText ? JSON.stringify(select.value) : select.value;
  };
  return { element: select, read };
}

function createNumber(
  { minimum, maximum }: FieldSchema,
  isWhole: boolean,
  isRequired: boolean,
  attributes: Readonly<Record<string, string>>,
): Field {
  const input = element('input', {
    ...attributes,
    type: 'number',
    step: isWhole ? '1' : 'any',
    required: isRequired,
    ...(minimum !== undefined && { min: minimum }),
    ...(maximum !== undefined && { max: maximum }),
  });
  const read = () => {
    const text = input.value.trim();
    if (text === '') return undefined;
    // Browsers take .5 for a number, JSON does not.
    const whole = text.replace(/^\+/, '').replace(/^-?(?=\.)/, (sign) => `${sign}0`);
    return jsonNumber.test(whole) ? whole : JSON.stringify(text);
  };
  return { element: input, read };
}

function createText(
  schema: FieldSchema,
  isRequired: boolean,
  attributes: Readonly<Record<string, string>>,
): Field {
  const { format, pattern = '', maxLength = 0 } = schema;
  const isDay = format === 'date';
  const isMoment = pattern.startsWith(datetimePattern);
  const type = isDay ? 'date' : isMoment ? 'datetime-local' : 'text';
  const input =
    maxLength > longText
      ? element('textarea', { ...attributes, rows: 2 })
      : element('input', {
          ...attributes,
          type,
          ...(isMoment && { step: '1' }),
          required: isRequired && (isDay || isMoment),
          spellcheck: 'false',
          autocomplete: 'off',
        });
  // A required text may be empty.
  const read = () =>
    input.value === '' && !(isRequired && type === 'text')
      ? undefined
      : JSON.stringify(input.value);
  if (format !== 'uuid') return { element: input, read };
  const make = button('New', {}, () => {
    input.value = createUuid();
  });
  return { element: element('span', { class: 'with-button' }, input, make), read };
}

function createJson(isRequired: boolean, attributes: Readonly<Record<string, string>>): Field {
  const input = element('textarea', { ...attributes, rows: 2, required: isRequired });
  const isJson = () => {
    try {
      JSON.parse(input.value);
      return true;
    } catch {
      return input.value.trim() === '';
    }
  };
  input.addEventListener('input', () => {
    input.setCustomValidity(isJson() ? '' : 'This is not JSON.');
  });
  return { element: input, read: () => input.value.trim() || undefined };
}

/** Values, or records, which have a field for each member. */
function createList(
  { items = {}, maxItems = Number.POSITIVE_INFINITY }: FieldSchema,
  isRequired: boolean,
  { 'aria-label': label = '', ...attributes }: Readonly<Record<string, string>>,
): Field {
  const rows = element('ol', { class: 'items' });
  const fields = new Map<HTMLElement, Field>();
  let count = 0;
  const append = () => {
    count += 1;
    const name = `${label} ${count}`;
    const field =
      items.properties === undefined
        ? createField(items, true, { 'aria-label': name })
        : createRecordField(items.properties, name);
    const row = element('li', {}, field.element);
    row.append(
      button('Remove', { 'aria-label': `Remove ${name}` }, () => {
        fields.delete(row);
        row.remove();
        add.disabled = false;
        add.focus();
      }),
    );
    fields.set(row, field);
    rows.append(row);
    add.disabled = fields.size >= maxItems;
  };
  const add = button('Add', { 'aria-label': `Add to ${label}` }, () => {
    append();
    rows.lastElementChild?.querySelector<HTMLElement>('input, select, textarea')?.focus();
  });
  if (isRequired) append();
  const group = { role: 'group', 'aria-label': label, tabindex: -1 };
  return {
    element: element('div', { ...attributes, ...group }, rows, add),
    read: () =>
      fields.size === 0 && !isRequired
        ? undefined
        : `[${[...fields.values()].map(({ read }) => read() ?? 'null').join(',')}]`,
  };
}

function createRecordField(
  properties: Readonly<Record<string, FieldSchema>>,
  label: string,
): Field {
  const members = Object.entries(properties).map(([name, schema]) => {
    const field = createField(schema, true, { 'aria-label': `${label}, ${name}` });
    return { name, field };
  });
  const read = () =>
    `{${members.map(({ name, field }) => `${JSON.stringify(name)}:${field.read() ?? 'null'}`).join(',')}}`;
  const shown = members.map(({ name, field }) =>
    element('span', { class: 'member' }, element('span', { class: 'note' }, name), field.element),
  );
  return { element: element('span', { class: 'members' }, ...shown), read };
}

/** A random UUID (RFC 9562, version 4). Browsers have their own only where the page was loaded safely. */
export function createUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
