// DBSlayer's metadata keys: their answers, and which of them need a connection.
import type { Config } from '../../../shared/config/config.ts';
import { clientInfo } from '../../../shared/mysql/open-connection.ts';
import type { Trailer } from '../../encode/formats/db.ts';
import type { ServerFacts } from '../../execution/execution.ts';
import { type MetadataKey, metadataKeys } from './request.ts';

type MetadataSettings = Pick<Config, 'section' | 'candidates'>;

const help: Readonly<Record<string, string>> = {
  SQL: 'in(string): one statement or several separated by ; out: their results in RESULT',
  PARAMS: 'in(array or object): values for ? or :name in one statement',
  TIMEOUT: 'in(number): the deadline in ms, at most statement_timeout',
  READ_ONLY: 'in(boolean): run in a read-only transaction, and only what can be read-only',
  NUMBERS: 'in("string"): exact numbers as JSON strings',
  ROLLBACK_ON_ERROR: 'in(boolean): roll back on an error, and say so',
  SERVER: 'in(string): the section that is meant; without it the first',
  STAT: 'in(boolean) out(string): mysql_stat()',
  CLIENT_INFO: 'in(boolean) out(string): mysql_get_client_info()',
  HOST_INFO: 'in(boolean) out(string): mysql_get_host_info()',
  SERVER_VERSION: 'in(boolean) out(number): mysql_get_server_version()',
  CLIENT_VERSION: 'in(boolean) out(number): mysql_get_client_version()',
  SERVER_NAME: 'in(boolean) out(string): the name of this section',
  SLAYER_HELP: 'in(boolean) out(object): this text',
};

/** Whether answering needs a connection to MySQL. */
export function needsConnection(keys: readonly MetadataKey[]): boolean {
  return keys.includes('STAT') || keys.includes('SERVER_VERSION');
}

/** The answers to the keys that need no connection. */
export function localMetadata(settings: MetadataSettings, keys: readonly MetadataKey[]): Trailer {
  return metadataKeys
    .filter((key) => keys.includes(key) && !needsConnection([key]))
    .map((key) => [key, JSON.stringify(localAnswer(settings, key))] as const);
}

/** All keys, in DBSlayer's order. @param facts the server's answers, if one of the keys needs them */
export function describeServer(
  settings: MetadataSettings,
  keys: readonly MetadataKey[],
  facts: ServerFacts | null,
): Trailer {
  const answers = new Map(localMetadata(settings, keys));
  if (facts !== null) {
    answers.set('STAT', JSON.stringify(facts.statistics));
    answers.set('SERVER_VERSION', String(versionNumber(facts.serverVersion)));
  }
  return metadataKeys.flatMap((key) => {
    const json = keys.includes(key) ? answers.get(key) : undefined;
    return json === undefined ? [] : [[key, json] as const];
  });
}

function localAnswer(settings: MetadataSettings, key: MetadataKey): unknown {
  switch (key) {
    case 'CLIENT_INFO':
      return clientInfo;
    case 'CLIENT_VERSION':
      return versionNumber(clientInfo);
    case 'HOST_INFO': {
      const [{ host, socket }] = settings.candidates;
      return socket === null ? `${host} via TCP/IP` : 'Localhost via UNIX socket';
    }
    case 'SERVER_NAME':
      return settings.section;
    default:
      return help;
  }
}

/**
 * A version as one number, major × 10000 + minor × 100 + patch (mysql_get_server_version of the C API).
 * MariaDB's replication prefix `5.5.5-` is not part of its version.
 */
function versionNumber(text: string): number {
  const own = text.startsWith('5.5.5-') ? text.slice('5.5.5-'.length) : text;
  const [, major, minor, patch] = /^(\d+)\.(\d+)(?:\.(\d+))?/.exec(own) ?? [];
  return Number(major ?? 0) * 10_000 + Number(minor ?? 0) * 100 + Number(patch ?? 0);
}
