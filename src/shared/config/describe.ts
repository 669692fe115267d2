// Descriptions of settings: the references of all keys, and the effective values of a section with masked secrets.
import { formatCandidate, formatListenAddress } from './addresses.ts';
import { type ClientOption, clientOptions } from './clients-file.ts';
import type { Config } from './config.ts';
import {
  fieldOf,
  isOfInstance,
  type Option,
  type OptionKey,
  optionKeys,
  options,
} from './options.ts';
import { describeType, formatValue } from './values.ts';

/** The reference of every key, as a Markdown table. */
export function describeOptions(): string {
  const rows = optionKeys.map((key) => {
    const option: Option = options[key];
    const initial = describeInitial(option);
    const owner = isOfInstance(key) ? 'daemon' : 'section';
    return `| \`${key}\` | ${describeType(option.type)} | ${initial} | ${owner} | ${option.meaning} |`;
  });
  return [
    '| key | value | default | set once per | meaning |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** The reference of every key of a clients file, as a Markdown table. */
export function describeClientOptions(): string {
  const rows = Object.entries<ClientOption>(clientOptions).map(([key, option]) => {
    const { type, ofCredentials, meaning } = option;
    const ofAnonymous = ofCredentials === true ? 'no' : 'yes';
    return `| \`${key}\` | ${describeType(type)} | ${describeInitial(option)} | ${ofAnonymous} | ${meaning} |`;
  });
  return [
    '| key | value | default | in `[anonymous]` | meaning |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** A key's default: as it is written in the file, how it is computed, or that there is none. */
export function describeInitial({
  initial,
  computed,
}: Pick<Option, 'initial' | 'computed'>): string {
  return initial === undefined ? (computed ?? 'none') : `\`${initial}\``;
}

const hidden = '********';

/** The effective settings as aligned `key = value` lines. Secrets are masked. */
export function describeConfig(config: Config): readonly string[] {
  const width = Math.max(...optionKeys.map((key) => key.length));
  return listSettings(config).map(([key, value]) => `${key.padEnd(width)} = ${value ?? '(none)'}`);
}

/** The effective settings as keys with their values. Secrets are masked. Null: not set. */
export function listSettings(config: Config): readonly (readonly [OptionKey, string | null])[] {
  return optionKeys.flatMap((key) => {
    const value = effectiveValue(config, key);
    return value === undefined ? [] : [[key, value] as const];
  });
}

/** Null: not set. Undefined: the value is shown with another key. */
function effectiveValue(config: Config, key: OptionKey): string | null | undefined {
  switch (key) {
    case 'password':
      return config.password === '' ? '(empty)' : hidden;
    case 'token':
      return config.tokens.length === 0 ? null : config.tokens.map(() => hidden).join(', ');
    case 'password_file':
    case 'token_file':
      return undefined;
    case 'host':
    case 'port':
    case 'socket':
      return describeServers(config, key);
    case 'listen':
      return formatListenAddress(config.listen);
    case 'allow_hosts':
      return config.allowHosts === null ? '(any)' : config.allowHosts.join(', ');
    case 'allow_origins':
      return config.allowOrigins.length === 0 ? null : config.allowOrigins.join(', ');
    default: {
      const value = config[fieldOf(key)];
      return value === null ? null : formatValue(options[key].type, value);
    }
  }
}

/** If there are several servers, `host` lists each with its port or its socket. */
function describeServers(
  { candidates: [first, ...others] }: Config,
  key: 'host' | 'port' | 'socket',
): string | null | undefined {
  const { host, port, socket } = first;
  if (others.length > 0) {
    return key === 'host' ? [first, ...others].map(formatCandidate).join(', ') : undefined;
  }
  switch (key) {
    case 'host':
      return host === '' ? null : host;
    case 'port':
      return socket === null ? String(port) : null;
    case 'socket':
      return socket;
    default:
      return key satisfies never;
  }
}
