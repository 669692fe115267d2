// The MySQL that groups are made of: one that was given, or the one of scripts/matrix.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { products } from '../compatibility/products.ts';
import { installServer } from '../compatibility/servers.ts';
import { openServerRoot, type ServerProgram } from './private-server.ts';

const plugin = 'usr/lib/mysql/plugin/group_replication.so';
const advice =
  'let DBHTTPD_TEST_SERVER_ROOT name a folder with the files of mysql-server-core 9.7 and of all that it needs, or let apt-get reach an archive of Debian’s that has it';

/**
 * Makes sure that it is here, and opens it. Takes a minute the first time. If it cannot be had, throws with the way to get it.
 * @param given a folder that it was unpacked into; by default one of the cache
 */
export async function installGroupServer(
  { given, cache }: { readonly given: string | undefined; readonly cache: string },
  say: (line: string) => void,
): Promise<ServerProgram> {
  const root = given ?? (await unpackServer(cache, say));
  if (!existsSync(join(root, plugin))) {
    throw new Error(`no MySQL with Group Replication in ${root}: ${advice}`);
  }
  return openServerRoot(root);
}

async function unpackServer(cache: string, say: (line: string) => void): Promise<string> {
  const product = products.find(({ title }) => title === 'MySQL');
  if (product === undefined) throw new Error('scripts/matrix knows no MySQL');
  mkdirSync(cache, { recursive: true });
  const { root } = await installServer(product, cache, say).catch((cause) => {
    throw new Error(`no MySQL: ${advice}`, { cause });
  });
  if (root === null) throw new Error(`the system's own MySQL is not used: ${advice}`);
  return root;
}
