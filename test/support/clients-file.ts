// A clients file in a directory of its own, and what its clients send.
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createWorkspace } from './workspace.ts';

/** The keys of each client by its name. */
export type ClientsText = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** A clients file. The test that created it must remove it. */
export type ClientsFile = {
  readonly path: string;
  /** Writes the file again. Each client has the token `<name>-token`, and [anonymous] has none. */
  readonly write: (clients: ClientsText) => void;
  readonly remove: () => void;
};

/** The token of a client. */
export const tokenOf = (name: string) => `${name}-token`;

/** The headers of a request with a token. */
export const bearing = (token: string) => ({ Authorization: `Bearer ${token}` });

/** The line of a token. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Writes a clients file. */
export function createClientsFile(clients: ClientsText): ClientsFile {
  const workspace = createWorkspace('clients', () => undefined);
  const path = join(workspace.path, 'clients.ini');
  const write = (all: ClientsText) => {
    const sections = Object.entries(all).map(([name, keys]) => {
      const token = name === 'anonymous' ? {} : { token_sha256: digestOf(tokenOf(name)) };
      const lines = Object.entries({ ...token, ...keys }).map(
        ([key, value]) => `${key} = ${value}`,
      );
      return [`[${name}]`, ...lines].join('\n');
    });
    writeFileSync(path, `${sections.join('\n\n')}\n`, { mode: 0o600 });
  };
  write(clients);
  return { path, write, remove: () => workspace.remove() };
}
