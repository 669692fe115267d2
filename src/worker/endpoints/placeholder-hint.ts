// The hint beside MySQL's syntax error where a parameter, or a placeholder without one, is the place of the error. Pure.
import type { Parameters, ParametersKey } from '../../shared/sql/bind.ts';

/** ER_PARSE_ERROR. Its message quotes the statement from the place of the error on, at most 80 characters of it. */
const syntaxError = 1064;

/** A string among the parameters, as the statement holds it: MySQL's message may cut it. */
const boundString = /'_utf8mb4 X'([0-9a-f]*)('?)/;
/** A placeholder, in the language of any server. */
const placeholder = /'(\?|:[A-Za-z_]\w*)/;
const digits = /^-?\d+$/;

/** Explains an error of a statement; null: there is nothing to explain. */
export type HintFor = (error: {
  readonly errno: number;
  readonly message: string;
}) => string | null;

/** @param params of the statement; null: the request has none */
export function createHint(params: Parameters | null, key: ParametersKey): HintFor {
  return ({ errno, message }) => {
    if (errno !== syntaxError) return null;
    const quoted = boundString.exec(message);
    if (params !== null && quoted !== null) {
      const [, hex = '', end] = quoted;
      // MySQL cuts in the middle of a byte: the end of its quotation follows half of one.
      const isWhole = end !== '' && hex.length % 2 === 0;
      return explainString(params, key, Buffer.from(hex, 'hex'), isWhole);
    }
    const found = placeholder.exec(message)?.[1];
    return found === undefined ? null : explainPlaceholder(found, params, key);
  };
}

function explainString(
  params: Parameters,
  key: ParametersKey,
  start: Buffer,
  isWhole: boolean,
): string {
  const [name, value] = findString(params, start, isWhole);
  const which = name === null ? `A value of ${key}` : `${key}[${name}]`;
  if (value !== null && digits.test(value)) {
    return `${which} is a string, and MySQL wants a number there, as after LIMIT: send it as a number of JSON.`;
  }
  return `${which} is a value, and MySQL wants a name or a keyword there. Write names of tables and columns, ASC and DESC into the SQL text (with dbhttpd/client: sql.id).`;
}

/** The first string that begins with these bytes, or consists of them, and its index or name. */
function findString(
  params: Parameters,
  start: Buffer,
  isWhole: boolean,
): readonly [name: string | null, value: string | null] {
  for (const [name, value] of Object.entries(params)) {
    if (typeof value !== 'string') continue;
    const bytes = Buffer.from(value.slice(0, start.length + 1), 'utf8');
    const compared = isWhole ? bytes : bytes.subarray(0, start.length);
    if (compared.equals(start)) return [Array.isArray(params) ? name : shortenName(name), value];
  }
  return [null, null];
}

/** Names are the client's: a long one is cut. */
function shortenName(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
}

function explainPlaceholder(
  found: string,
  params: Parameters | null,
  key: ParametersKey,
): string | null {
  if (found === '?')
    return params === null ? `The SQL text has a ?: send its value in ${key}, an array.` : null;
  if (params !== null && !Array.isArray(params)) return null;
  return `The SQL text has a :name: send its value in ${key}, an object.`;
}
