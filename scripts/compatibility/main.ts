// scripts/matrix, once everything is built: options -> servers and Nodes -> one cell after the other -> the table.
// Exit 0: all passed; 1: something failed, or could not be had; 64: command line; 130: stopped by a signal.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { explain } from '../support/command-line.ts';
import { runCell } from './cell.ts';
import { type InstalledNode, installNode } from './nodes.ts';
import { type Cell, help, parseCommand } from './options.ts';
import { chooseCache, type Installed, installServer } from './servers.ts';
import { type Outcome, renderMatrix } from './table.ts';

type Ready = {
  readonly name: string;
  readonly title: string;
  readonly server: Installed;
  readonly node: InstalledNode;
};

const say = (line: string) => process.stdout.write(`${line}\n`);

async function runMatrix(cells: readonly Cell[], words: readonly string[]): Promise<number> {
  const cache = chooseCache(process.env);
  mkdirSync(cache, { recursive: true });
  // All servers and Nodes are installed first: a missing server is known before the first run, not after an hour.
  const ready: Ready[] = [];
  for (const { product, node } of cells) {
    ready.push({
      name: `${product.name}-node-${node}`,
      title: product.title,
      server: await installServer(product, cache, say),
      node: await installNode(node, cache, say),
    });
  }
  const outcomes: Outcome[] = [];
  for (const [index, { name, title, server, node }] of ready.entries()) {
    const labels = { server: `${title} ${server.version}`, node: `Node ${node.version}` };
    say(`- ${index + 1} of ${ready.length}: ${labels.server} on ${labels.node}`);
    const from = performance.now();
    const logPath = join(cache, `${name}.log`);
    const tally = await runCell({ server, node, words, logPath, say });
    outcomes.push({ ...labels, tally });
    const seconds = Math.round((performance.now() - from) / 1000);
    say(`  ${tally.passed} passed, ${tally.failed} failed in ${seconds} s; all of it: ${logPath}`);
  }
  say(`\n${renderMatrix(outcomes)}`);
  return outcomes.every(({ tally }) => tally.failed === 0) ? 0 : 1;
}

async function main(): Promise<number> {
  const here = Number.parseInt(process.versions.node, 10);
  const command = parseCommand(process.argv.slice(2), here);
  switch (command.kind) {
    case 'help':
    case 'fault':
      return explain(command, help);
    case 'run':
      // The run of a cell ends with this process.
      for (const name of ['SIGINT', 'SIGTERM'] as const)
        process.once(name, () => process.exit(130));
      try {
        return await runMatrix(command.cells, command.words);
      } catch (error) {
        process.stderr.write(`scripts/matrix: ${(error as Error).message}\n`);
        return 1;
      }
    default:
      throw new Error(`no such command: ${command satisfies never}`);
  }
}

process.exitCode = await main();
