// scripts/cluster failover: a primary killed, frozen, made read-only or restarted under writes, again and again, each time before fresh servers;
// a verdict per promise over all of them.
// Must not know how a history is made or judged.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line; 130: stopped by a signal.
import { inspect, parseArgs } from 'node:util';
import {
  type FailoverHistory,
  type FailoverPlan,
  makeFailoverHistory,
} from '../../test/support/failover-history.ts';
import { failoverPromises } from '../../test/support/failover-judge.ts';
import { type Strike, strikes } from '../../test/support/failover-strikes.ts';
import { createRandom } from '../../test/support/random.ts';
import { median } from '../support/statistics.ts';
import { runToVerdicts } from '../support/verdict-run.ts';
import { Findings, type Verdict } from '../support/verdicts.ts';

const help = `Usage: scripts/cluster failover [--rounds <n>] [--how <strike>,…] [--semi-sync | --losing]
                                 [--floating] [--alone] [--seed <n>]

So many failovers (100), each before a MariaDB primary and two replicas of its own, under writes by every way: /db, /v1/query, and
batches with idempotency keys, which are repeated until they are told. What clients were told is judged by what the servers hold.

  --how        killed, frozen, read-only: then a replica is promoted, and the former primary comes back writable. restarted: it crashes and
               comes back in its place. In turn, unless some are named
  --semi-sync  writes wait for a replica: none that was told may be lost
  --losing     replicas hear nothing of the last writes before a server is killed or frozen
  --floating   the gateway knows one address, which is moved to the new primary; else it knows all three and has to find out
  --alone      one server without replicas, which can only be restarted
  --seed       decides the ways of writing and the time from a strike to the promotion; it is printed
`;

type Order = {
  readonly rounds: number;
  readonly kinds: readonly Strike[];
  readonly semiSync: boolean;
  readonly losing: boolean;
  readonly floating: boolean;
  readonly replicas: number;
  readonly seed: number;
};

const clients = 12;
/** From a strike to the promotion, at most: whoever promotes has to notice first. */
const mostAfterMs = 1_500;
/** Far more than servers, gateway, failover and look take; a gateway that serves nothing is waited for for a while. */
const longestRoundMs = 90_000;
const mostSeed = 999_999;
const mostRounds = 1_000;

const say = (line: string) => process.stdout.write(`${line}\n`);

/** Reads argv (without node and script); a string says what is wrong with it. */
function parseOrder(argv: readonly string[]): Order | string | null {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      rounds: { type: 'string', default: '100' },
      how: { type: 'string' },
      'semi-sync': { type: 'boolean', default: false },
      losing: { type: 'boolean', default: false },
      floating: { type: 'boolean', default: false },
      alone: { type: 'boolean', default: false },
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
  const wanted = values.alone ? ['restarted'] : (values.how?.split(',') ?? [...strikes]);
  const kinds = strikes.filter((kind) => wanted.includes(kind));
  if (kinds.length < wanted.length) return `--how takes ${strikes.join(', ')}`;
  if (values.losing && values['semi-sync']) return '--semi-sync loses nothing';
  return {
    rounds: Number(values.rounds),
    kinds,
    semiSync: values['semi-sync'],
    losing: values.losing,
    floating: values.floating,
    replicas: values.alone ? 0 : 2,
    seed: Number(values.seed),
  };
}

async function runRounds({ rounds, kinds, ...order }: Order): Promise<Verdict[]> {
  say(`seed ${order.seed}`);
  const random = createRandom(order.seed);
  const findings = new Findings(Object.values(failoverPromises));
  const served: number[] = [];
  let lost = 0;
  for (let round = 1; round <= rounds; round += 1) {
    const how = kinds[(round - 1) % kinds.length] ?? 'killed';
    // Whoever makes a primary read-only waits for the replicas, and a restarted one has its own writes.
    const losing = order.losing && (how === 'killed' || how === 'frozen');
    const plan = { ...order, how, losing, clients, seed: order.seed + round };
    const afterMs = Math.round(random() * mostAfterMs);
    const history = await makeFailoverHistory({ ...plan, afterMs });
    say(`${round}/${rounds} ${describeRound({ ...plan, afterMs }, history)}`);
    for (const { promise, example } of history.breaches) findings.breach(promise, example);
    lost += history.lost.length;
    if (history.servedMs !== null) served.push(history.servedMs);
  }
  if (served.length > 0) {
    const [middle, most] = [median(served), Math.max(...served)].map(Math.round);
    say(`served ${middle} ms after the promotion in the median, ${most} ms at most`);
  }
  say(`${lost} writes lost with former primaries`);
  return findings.verdicts();
}

function describeRound(
  { how, afterMs }: FailoverPlan,
  { counts, lost, servedMs, breaches }: FailoverHistory,
): string {
  const told = [...counts].map(([what, n]) => `${n} ${what}`).join(', ');
  const service =
    servedMs === null ? 'never served again' : `served after ${Math.round(servedMs)} ms`;
  return `${how}, ${afterMs} ms to the promotion, ${service}, ${lost.length} lost with the former primary, ${breaches.length} breaches: ${told}`;
}

async function main(): Promise<number> {
  const order = readOrder();
  if (order === null || typeof order === 'string') {
    const out = order === null ? process.stdout : process.stderr;
    out.write(order === null ? help : `${order}\n\n${help}`);
    return order === null ? 0 : 64;
  }
  const longestMs = order.rounds * longestRoundMs;
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
