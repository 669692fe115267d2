// scripts/cluster commands: types the commands of docs/operate/failover.md before real servers, while clients write all the time, and compares what
// they print with what the page shows.
// Exit 0: the page is right; 1: it is not, or the run could not be made; 64: command line; 130: stopped by a signal.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { headingsWithCommands, type Played } from '../../test/support/pages/failover-page.ts';
import {
  playedHeadings,
  playGalera,
  playGroup,
  playMariadb,
} from '../../test/support/pages/failover-scenes.ts';
import { chooseCache } from '../compatibility/servers.ts';
import { Fault } from '../support/command-line.ts';
import { installGalera } from '../support/galera-root.ts';
import { installGroupServer } from '../support/group-server.ts';
import { runCommand, say } from '../support/run-command.ts';
import type { Verdict } from '../support/verdicts.ts';

const help = `Usage: scripts/cluster commands [--with <kind>,…]

Runs the commands of docs/operate/failover.md as they stand, with three servers of each kind and a gateway before them, while four clients write.
Each command must print what the page shows, the console must say what the page shows, and no reply to a write may be contradicted by what the
servers hold.

  --with  mariadb: replication of the local mariadbd. galera: a cluster, unpacked as by scripts/cluster galera. group: a group of MySQL
          servers, unpacked as by scripts/cluster group. All of them, unless some are named
`;

type Kind = keyof typeof playedHeadings;
const kinds = Object.keys(playedHeadings) as readonly Kind[];

/** The servers of a kind with their download, and all of their sections. */
const longestKindMs = 900_000;

type Order = { readonly kinds: readonly Kind[] };

function parseOrder(argv: readonly string[]): Order | null {
  const { values } = parseArgs({
    args: [...argv],
    options: { with: { type: 'string' }, help: { type: 'boolean', default: false } },
  });
  if (values.help) return null;
  const wanted = values.with?.split(',') ?? kinds;
  const known = kinds.filter((kind) => wanted.includes(kind));
  if (known.length < wanted.length) throw new Fault(`--with takes ${kinds.join(', ')}`);
  return { kinds: known };
}

const players: Readonly<Record<Kind, (say: (played: Played) => void) => Promise<void>>> = {
  mariadb: playMariadb,
  galera: async (report) => {
    const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
    const root = process.env.DBHTTPD_GALERA_ROOT || join(cache, 'dbhttpd/galera-10.11');
    await playGalera(await installGalera(root), report);
  },
  group: async (report) => {
    const { DBHTTPD_TEST_SERVER_ROOT: given } = process.env;
    const program = await installGroupServer({ given, cache: chooseCache(process.env) }, say);
    await playGroup(program, report);
  },
};

async function runKinds({ kinds: wanted }: Order): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  for (const kind of wanted) {
    const found = await players[kind](describe).then(
      () => '',
      (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error)),
    );
    verdicts.push({ promise: `${kind}: the page is right`, kept: found === '', found });
  }
  const played = kinds.flatMap((kind) => playedHeadings[kind]);
  const missed = headingsWithCommands().filter((heading) => !played.includes(heading));
  const promise = 'every section with commands is run';
  return [...verdicts, { promise, kept: missed.length === 0, found: missed.join(', ') }];
}

function describe({ heading, written }: Played): void {
  const { accepted, refused, unknown, failures, longestMs } = written;
  const all = accepted.length + refused.length + unknown.length;
  const codes = Object.entries(failures).map(([code, count]) => `${count} ${code}`);
  say(
    `${heading}: ${all} writes, ${refused.length} refused, ${unknown.length} unknown, the longest waited ${Math.round(longestMs)} ms. ${codes.join(', ')}`,
  );
}

await runCommand({
  help,
  parse: parseOrder,
  prefix: 'dbhttpd-cluster-',
  longestMs: ({ kinds: wanted }) => wanted.length * longestKindMs,
  run: runKinds,
});
