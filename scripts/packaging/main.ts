// scripts/packages, once everything is built: reads the command line, and makes the packages.
// Exit 0: made; 1: not made; 64: command line.
import { parseArgs } from 'node:util';
import { explain, Fault, type NoRun, readCommand, readList } from '../support/command-line.ts';
import { type PackageKind, packageKinds } from './files.ts';
import { makePackage } from './package.ts';

const help = `Usage: scripts/packages [--revision <n>] [--out <folder>] [deb] [rpm]

Makes the packages of Debian and of rpm. Without a word: both.

  --revision   the revision of a package with the same version: 1 by default
  --out        where they go: dist/packages by default
  --help       this text
`;

type Order = {
  readonly kind: 'make';
  readonly kinds: readonly PackageKind[];
  readonly revision: number;
  readonly out: string;
};

function parse(argv: readonly string[]): Order | NoRun {
  return readCommand((): Order | NoRun => {
    const { values, positionals } = parseArgs({
      args: [...argv],
      options: {
        revision: { type: 'string', default: '1' },
        out: { type: 'string', default: 'dist/packages' },
        help: { type: 'boolean', default: false },
      },
      allowPositionals: true,
    });
    if (values.help) return { kind: 'help' };
    if (!/^[1-9]\d*$/.test(values.revision)) throw new Fault('--revision takes a number');
    for (const word of positionals) readList('packages', word, packageKinds);
    const isWanted = (kind: PackageKind) => positionals.length === 0 || positionals.includes(kind);
    const kinds = packageKinds.filter(isWanted);
    return { kind: 'make', kinds, revision: Number(values.revision), out: values.out };
  });
}

const order = parse(process.argv.slice(2));
if (order.kind === 'make') {
  const { revision, out } = order;
  for (const kind of order.kinds) {
    process.stdout.write(`${makePackage({ kind, revision, out, effort: 'high' })}\n`);
  }
} else {
  process.exitCode = explain(order, help);
}
