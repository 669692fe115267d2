// The key under which a gateway sends its password to a MySQL server over TCP without TLS, as a file and a setting.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../ini-text.ts';
import { createWorkspace, type Workspace } from '../workspace.ts';
import type { Database } from './mariadb.ts';

let workspace: Workspace | null = null;

/** The setting for a section that reaches this server; none if the server has no key, as MariaDB. The file goes with the process. */
export function keySettings({
  name,
  serverKey = null,
}: Pick<Database, 'name'> & Partial<Pick<Database, 'serverKey'>>): { server_public_key?: string } {
  if (serverKey === null) return {};
  workspace ??= createWorkspace('keys', () => {});
  const file = join(workspace.path, `${name}.pem`);
  writeFileSync(file, serverKey);
  return { server_public_key: file } satisfies Settings;
}
