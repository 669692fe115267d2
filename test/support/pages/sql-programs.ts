// Replaces the programs mariadb and mysql in the commands of a page: the same options, the same output as in batch mode.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Row } from '../database/mariadb.ts';

/** Runs one statement, or several, and resolves to what mysql2 returns. */
export type RunSql = (sql: string) => Promise<readonly Row[]>;

/** Programs that were opened; the caller must close them. */
export type SqlPrograms = {
  /** Shell functions of their names. */
  readonly functions: string;
  readonly close: () => void;
};

/** Opens `mariadb` and `mysql` for servers by their names: `-h <name> [-N] -e <sql>`. */
export async function openSqlPrograms(
  servers: Readonly<Record<string, RunSql>>,
): Promise<SqlPrograms> {
  const listener = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', async () => {
      const words = Buffer.concat(chunks).toString().split('\0').slice(0, -1);
      const { isFine, text } = await answer(servers, words);
      response.writeHead(isFine ? 200 : 500).end(text);
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as AddressInfo;
  const send = `printf '%s\\0' "$@" | curl -s --fail-with-body --data-binary @- http://127.0.0.1:${port}/`;
  return {
    functions: ['mariadb', 'mysql'].map((name) => `${name}() { ${send}; }`).join('\n'),
    close: () => {
      listener.close();
      listener.closeAllConnections();
    },
  };
}

async function answer(
  servers: Readonly<Record<string, RunSql>>,
  words: readonly string[],
): Promise<{ readonly isFine: boolean; readonly text: string }> {
  const after = (option: string) => words[words.indexOf(option) + 1] ?? '';
  const run = servers[after('-h')];
  if (run === undefined) return { isFine: false, text: `no server: ${words.join(' ')}\n` };
  const sql = after('-e');
  try {
    const rows = rowsOf(await run(sql.replace(/\\G$/, '')));
    const text = sql.endsWith('\\G') ? asColumn(rows) : asTable(rows, words.includes('-N'));
    return { isFine: true, text };
  } catch (error) {
    const { errno, sqlState, message } = error as { errno?: number; sqlState?: string } & Error;
    return { isFine: false, text: `ERROR ${errno} (${sqlState}) at line 1: ${message}\n` };
  }
}

/** The rows of all result sets: a statement without one has a packet instead. */
function rowsOf(result: readonly unknown[]): readonly Row[] {
  if (!Array.isArray(result)) return [];
  if (result.every((one) => !Array.isArray(one) && !isPacket(one))) return result;
  return result.flatMap((one) => (Array.isArray(one) ? one : []));
}

const isPacket = (one: unknown) => typeof one === 'object' && one !== null && 'fieldCount' in one;

const asText = (value: unknown) => (value === null ? 'NULL' : String(value));

function asTable(rows: readonly Row[], isBare: boolean): string {
  const [first] = rows;
  if (first === undefined) return '';
  const lines = rows.map((row) => Object.values(row).map(asText));
  const head = isBare ? [] : [Object.keys(first)];
  return [...head, ...lines].map((line) => `${line.join('\t')}\n`).join('');
}

/** With the names in a column, as after \G. */
function asColumn(rows: readonly Row[]): string {
  return rows
    .map((row, index) => {
      const longest = Math.max(...Object.keys(row).map((name) => name.length));
      const stars = '*'.repeat(27);
      const lines = Object.entries(row).map(
        ([name, value]) => `${name.padStart(longest)}: ${asText(value)}\n`,
      );
      return `${stars} ${index + 1}. row ${stars}\n${lines.join('')}`;
    })
    .join('');
}
