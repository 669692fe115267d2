// The command line of scripts/matrix, which chooses cells (a server and a Node) and test files, and its help text.
import { parseArgs } from 'node:util';
import { type NoRun, readCommand, readList } from '../support/command-line.ts';
import { type Product, products } from './products.ts';

const serverNames = products.map(({ name }) => name);
/** Releases of Node that are tested. */
const nodeMajors = [20, 22, 24, 26];
/** The server for the other versions of Node, which scripts/test uses on Debian 12. */
const usualServer = 'mariadb-10.11';

export const help = `Usage: scripts/matrix [options] [word…]

Runs the tests against several database servers and on several versions of Node, one combination after the other. Each takes four
minutes or more. Prints a table: passed / failed / skipped. Words choose test files by their path.

Without options: every server on this Node, and every Node on ${usualServer}.

  --servers <list>   only these, on every Node of --nodes (on this Node):
                     ${serverNames.join(', ')}
  --nodes <list>     only these, against every server of --servers (${usualServer}): ${nodeMajors.join(', ')}
  --all              every server on every Node
  --help             this text
`;

/** One combination. `node` is a major version. */
export type Cell = { readonly product: Product; readonly node: number };

/** The outcome of reading the command line. */
export type Command =
  | { readonly kind: 'run'; readonly cells: readonly Cell[]; readonly words: readonly string[] }
  | NoRun;

const flags = {
  servers: { type: 'string' },
  nodes: { type: 'string' },
  all: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

function combine(servers: readonly string[], nodes: readonly number[]): Cell[] {
  return products
    .filter(({ name }) => servers.includes(name))
    .flatMap((product) => nodes.map((node) => ({ product, node })));
}

function selectCells(
  values: { servers?: string; nodes?: string; all: boolean },
  here: number,
): Cell[] {
  if (values.all) return combine(serverNames, nodeMajors);
  const { servers, nodes } = values;
  if (servers === undefined && nodes === undefined) {
    const others = nodeMajors.filter((node) => node !== here);
    return [...combine(serverNames, [here]), ...combine([usualServer], others)];
  }
  return combine(
    servers === undefined ? [usualServer] : readList('servers', servers, serverNames),
    nodes === undefined ? [here] : readList('nodes', nodes, nodeMajors.map(String)).map(Number),
  );
}

/** Reads argv (without node and script). `here`: the major version of the Node that runs this. */
export function parseCommand(argv: readonly string[], here: number): Command {
  return readCommand((): Command => {
    const { values, positionals } = parseArgs({
      args: [...argv],
      options: flags,
      allowPositionals: true,
    });
    if (values.help) return { kind: 'help' };
    return { kind: 'run', cells: selectCells(values, here), words: positionals };
  });
}
