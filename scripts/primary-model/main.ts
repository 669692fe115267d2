// scripts/model: explores which server a gateway writes to, over all that may happen to three servers, by the product's own rules.
// Exit 0: it was explored; 64: command line.
import { parseArgs } from 'node:util';
import { explore, type Found } from './search.ts';
import { usualBudget } from './world.ts';

const help = `Usage: scripts/model [--depth <n>] [--show <n>]

Explores all that may happen in --depth steps (8) to a primary and two replicas: crashes, promotions, switchovers, partitions, errant rows,
restores, chains, restarts of the gateway with its memory and without. The gateway's decision in each state is compared with the truth.

  --show   how many ways to each kind of finding are printed (5)
`;

const maxDepth = 12;

function main(argv: readonly string[]): number {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      depth: { type: 'string', default: '8' },
      show: { type: 'string', default: '5' },
      help: { type: 'boolean', default: false },
    },
  });
  const [depth, show] = [Number(values.depth), Number(values.show)];
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  if (!Number.isInteger(depth) || depth < 0 || depth > maxDepth || !Number.isInteger(show)) {
    process.stderr.write(help);
    return 64;
  }
  print(
    explore(usualBudget, depth, (at, states) => say(`depth ${at}: ${states} states`)),
    show,
  );
  return 0;
}

function print(found: Found, show: number): void {
  const { states, sights, avoidable, withoutMemory, unknowable } = found;
  const { refusing, saneRefusing, reasons } = found;
  say(`${states} states, ${sights} views`);
  say(
    `${avoidable.length} unsafe views of a gateway with a memory that are right in no other state`,
  );
  showWays(avoidable, show);
  say(
    `${withoutMemory.length} unsafe views of a gateway without one that are right in no other state`,
  );
  showWays(withoutMemory, show);
  say(`${unknowable.length} unsafe views that are right in another state`);
  showWays(unknowable, show);
  say(`${refusing.length} views in which the true primary could be written to, and is not`);
  for (const [reason, views] of Object.entries(reasons)) say(`  ${views} ${reason}`);
  say(`${saneRefusing.length} of these of servers that are as they should be`);
  showWays(saneRefusing, show);
}

function showWays(ways: readonly (readonly string[])[], show: number): void {
  const shortest = ways.toSorted((one, other) => one.length - other.length).slice(0, show);
  for (const way of shortest) say(`  ${way.join(', ')}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

process.exitCode = main(process.argv.slice(2));
