// The clients of --check: a table of who may do what, and warnings about what will soon stop to work or never did.
import { type Client, defaultClient, isAllowed, permissions } from '../../shared/clients/client.ts';
import { clientOptions } from '../../shared/config/clients-file.ts';
import type { Config } from '../../shared/config/config.ts';
import { formatDate, formatValue } from '../../shared/config/values.ts';
import { findClientExpiry, listExpiringClients } from '../observe/expiry-watch.ts';
import { type Finding, placeOf, warning } from './report.ts';
import { type Cell, formatTable } from './table.ts';

const maxWidth = 100;
const indent = '  ';
const none = '–';
const headings = ['client', 'credentials', 'may', 'sections', 'limits', 'expires'];

/** A table of who may do what, in lines of at most 100 characters. Empty: no clients are configured. */
export function describeClients(config: Config): readonly string[] {
  const { access, tokens, credentialFiles } = config;
  if (access === null) return [];
  const { clients, anonymous } = access.clients;
  const rows = [
    ...(tokens.length === 0 ? [] : [describe(defaultClient, [countTokens(tokens.length)])]),
    ...clients.map((client) => describe(client, credentialsOf(client))),
    ...(anonymous === null ? [] : [describe(anonymous, ['none'])]),
  ];
  const lines = formatTable(headings, rows, maxWidth - indent.length);
  return [`clients of ${credentialFiles.clients}`, ...lines.map((line) => `${indent}${line}`)];
}

function describe(client: Client, credentials: Cell): readonly Cell[] {
  const { name, allow, mayClaim, sections, expiresAt } = client;
  const limits = limitsOf(client);
  return [
    [name],
    credentials,
    [
      ...(allow.length === permissions.length ? ['all'] : allow),
      ...mayClaim.map((claim) => `claim ${claim}`),
    ],
    sections ?? ['all'],
    limits.length === 0 ? [none] : limits,
    [expiresAt === null ? none : formatDate(expiresAt)],
  ];
}

function credentialsOf({ tokenDigests, conditions }: Client): Cell {
  return [
    ...(tokenDigests.length === 0 ? [] : [countTokens(tokenDigests.length)]),
    ...(conditions.length === 0 ? [] : ['JWT']),
  ];
}

function countTokens(count: number): string {
  return count === 1 ? '1 token' : `${count} tokens`;
}

/** The limits by their keys of the file, as they are written there. */
function limitsOf(client: Client): Cell {
  const limits = {
    share: client.share === defaultClient.share ? null : client.share,
    max_in_flight: client.maxInFlight,
    queue: client.queue,
    max_rows: client.maxRows,
    max_result_bytes: client.maxResultBytes,
    statement_timeout: client.statementTimeoutMs,
    max_wait: client.maxWaitMs,
  } as const satisfies Partial<Record<keyof typeof clientOptions, number | null>>;
  return [
    ...(client.readOnly ? ['read_only'] : []),
    ...(Object.keys(limits) as (keyof typeof limits)[]).flatMap((key) => {
      const value = limits[key];
      return value === null ? [] : [`${key} ${formatValue(clientOptions[key].type, value)}`];
    }),
  ];
}

/** Warns of clients that expire within 14 days or have expired, and of permissions that open nothing. */
export function findClientWarnings(config: Config, nowMs: number): readonly Finding[] {
  const { access } = config;
  if (access === null) return [];
  const { clients, anonymous } = access.clients;
  const expiring = listExpiringClients(config).flatMap((one) => {
    const problem = findClientExpiry(one, nowMs);
    return problem === null ? [] : [`the client ${one.client} ${problem}`];
  });
  const idle = [...clients, ...(anonymous === null ? [] : [anonymous])].flatMap(findIdle);
  return [...expiring, ...idle].map((message) => warning(placeOf(config, 'clients'), message));
}

/** A batch and a transaction consist of statements, and an agent runs them as tools. All of them need a permission of their own. */
function findIdle(client: Client): readonly string[] {
  if (isAllowed(client, 'sql') || isAllowed(client, 'named')) return [];
  return (['batch', 'transaction', 'mcp'] as const)
    .filter((permission) => isAllowed(client, permission))
    .map(
      (permission) =>
        `the client ${client.name} has \`${permission}\`, which opens nothing without \`sql\` or \`named\``,
    );
}
