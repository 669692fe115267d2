// scripts/release, once everything is built: makes the files of the release, says what it would publish, and publishes if that is ordered.
// Exit 0: ready, or published; 1: not ready, or a command failed; 64: command line.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { packageKinds } from '../packaging/files.ts';
import { makePackage, readEpoch } from '../packaging/package.ts';
import { explain, type NoRun, readCommand } from '../support/command-line.ts';
import { readProjectFacts } from '../support/project-facts.ts';
import { listParts, listSums } from './parts.ts';
import { type Artefacts, type Checkout, release } from './plan.ts';

const help = `Usage: scripts/release [--publish]

Makes the packages for npm, Debian and rpm, the list of their parts and the checksums in dist/release, and prints what a
release would publish. It is a dry run: nothing leaves this machine.

  --publish   publishes, unless something is missing
  --help      this text
`;

const folder = 'dist/release';

/** Runs a command, and returns what it printed. Throws if it fails. */
function run(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

function readCheckout(): Checkout {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  return {
    version,
    changelog: readFileSync('CHANGELOG.md', 'utf8'),
    facts: readProjectFacts(),
    changed: run('git', 'status', '--porcelain')
      .split('\n')
      .filter((line) => line !== ''),
    tags: run('git', 'tag', '--list').split('\n'),
  };
}

/** Makes the files of a release in its folder, which is empty before. */
function make(version: string): Artefacts {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const pack = (source: string) =>
    run(
      'npm',
      'pack',
      '--silent',
      '--ignore-scripts',
      `--pack-destination=${folder}`,
      source,
    ).trim();
  const npm = [pack('.'), pack('./dist/client')];
  const systems = packageKinds.map((kind) =>
    basename(makePackage({ kind, revision: 1, out: folder, effort: 'high' })),
  );
  const parts = `dbhttpd-${version}.cdx.json`;
  const time = new Date(readEpoch(version) * 1000);
  writeFileSync(join(folder, parts), listParts('dbhttpd', time));
  const summed = [...npm, ...systems, parts];
  writeFileSync(join(folder, 'SHA256SUMS'), listSums(folder, summed));
  return { folder, npm, files: [...systems, parts, 'SHA256SUMS'] };
}

function parse(argv: readonly string[]): { kind: 'run'; isPublished: boolean } | NoRun {
  return readCommand(() => {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        publish: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) return { kind: 'help' } as const;
    return { kind: 'run', isPublished: values.publish } as const;
  });
}

const order = parse(process.argv.slice(2));
if (order.kind === 'run') {
  const checkout = readCheckout();
  const { isReady, lines } = release(checkout, make(checkout.version), {
    isPublished: order.isPublished,
    execute: ([command, ...args]) => void execFileSync(command, args, { stdio: 'inherit' }),
  });
  process.stdout.write(`${lines.join('\n')}\n`);
  process.exitCode = isReady ? 0 : 1;
} else {
  process.exitCode = explain(order, help);
}
