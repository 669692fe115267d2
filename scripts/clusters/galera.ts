// scripts/cluster galera: the node that is written to is struck under writes, again and again, before one cluster of three; a verdict per
// promise over all rounds. Must not know how a history is made or judged.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line; 130: stopped by a signal.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { inspect, parseArgs } from 'node:util';
import { failoverPromises } from '../../test/support/failover-judge.ts';
import { startGalera } from '../../test/support/galera.ts';
import {
  type GaleraHistory,
  type GaleraPlan,
  type GaleraStrike,
  galeraPromises,
  galeraStrikes,
  makeGaleraHistory,
} from '../../test/support/galera-history.ts';
import { installGalera } from '../support/galera-root.ts';
import { median } from '../support/statistics.ts';
import { runToVerdicts } from '../support/verdict-run.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';

const help = `Usage: scripts/cluster galera [--rounds <n>] [--how <strike>,…] [--seed <n>]

So many rounds (25) before a Galera cluster of three nodes and two gateways that know them all, under writes by every way. What clients were
told is judged by what the nodes hold. Galera is unpacked from Debian's archive into a folder of its own (~/.cache/dbhttpd/galera-10.11, or
DBHTTPD_GALERA_ROOT); nothing is installed.

  --how   killed, frozen, desynced, isolated: the node that is written to, which comes back and is written to again. quorum: the others are
          frozen. In turn, unless some are named
  --seed  decides the ways of writing; it is printed
`;

type Order = {
  readonly rounds: number;
  readonly kinds: readonly GaleraStrike[];
  readonly seed: number;
};

const clients = 12;
/** The start of the cluster, and of a download of its programs. */
const longestStartMs = 600_000;
/** Far more than a strike, a return and a look take. */
const longestRoundMs = 120_000;
const mostSeed = 999_999;
const mostRounds = 1_000;

const say = (line: string) => process.stdout.write(`${line}\n`);

/** Reads argv (without node and script); a string says what is wrong with it. */
function parseOrder(argv: readonly string[]): Order | string | null {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      rounds: { type: 'string', default: '25' },
      how: { type: 'string' },
      seed: { type: 'string', default: String(1 + (Date.now() % mostSeed)) },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  const isCount = (text: string, most: number) => /^\d+$/.test(text) && Number(text) <= most;
  if (!isCount(values.rounds, mostRounds) || Number(values.rounds) === 0) {
    return `--rounds wants a number from 1 to ${mostRounds}`;
  }
  if (!isCount(values.seed, mostSeed)) return `--seed wants a number up to ${mostSeed}`;
  const wanted = values.how?.split(',') ?? [...galeraStrikes];
  const kinds = galeraStrikes.filter((kind) => wanted.includes(kind));
  if (kinds.length < wanted.length) return `--how takes ${galeraStrikes.join(', ')}`;
  return { rounds: Number(values.rounds), kinds, seed: Number(values.seed) };
}

async function runRounds({ rounds, kinds, seed }: Order): Promise<Verdict[]> {
  say(`seed ${seed}`);
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const root = process.env.DBHTTPD_GALERA_ROOT || join(cache, 'dbhttpd/galera-10.11');
  const cluster = await startGalera(await installGalera(root));
  const { alone: _, ...common } = failoverPromises;
  const findings = new Findings([...Object.values(common), ...Object.values(galeraPromises)]);
  const served: number[] = [];
  try {
    for (let round = 1; round <= rounds; round += 1) {
      const how = kinds[(round - 1) % kinds.length] ?? 'killed';
      const plan = { how, clients, seed: seed + round };
      const history = await makeGaleraHistory(cluster, plan);
      say(`${round}/${rounds} ${describeRound(plan, history)}`);
      if (history.stalled !== null) say(history.stalled);
      for (const { promise, example } of history.breaches) findings.breach(promise, example);
      if (history.servedMs !== null) served.push(history.servedMs);
    }
  } finally {
    await cluster.stop();
  }
  if (served.length > 0) {
    const [middle, most] = [median(served), Math.max(...served)].map(Math.round);
    say(`served ${middle} ms after the cluster went on in the median, ${most} ms at most`);
  }
  return findings.verdicts();
}

function describeRound(
  { how }: GaleraPlan,
  { counts, servedMs, backMs, breaches }: GaleraHistory,
): string {
  const told = [...counts].map(([what, n]) => `${n} ${what}`).join(', ');
  const service =
    servedMs === null ? 'never served again' : `served after ${Math.round(servedMs)} ms`;
  return `${how}, ${service}, the first node written to ${Math.round(backMs)} ms after its return, ${breaches.length} breaches: ${told}`;
}

async function main(): Promise<number> {
  const order = readOrder();
  if (order === null || typeof order === 'string') {
    const out = order === null ? process.stdout : process.stderr;
    out.write(order === null ? help : `${order}\n\n${help}`);
    return order === null ? 0 : 64;
  }
  const longestMs = longestStartMs + order.rounds * longestRoundMs;
  return runToVerdicts({ prefix: 'dbhttpd-cluster-', longestMs }, () => runRounds(order), say);
}

function readOrder(): Order | string | null {
  try {
    return parseOrder(process.argv.slice(2));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code?.startsWith('ERR_PARSE_ARGS')) return message;
    throw error;
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${inspect(error)}\n`);
  process.exit(1);
}
