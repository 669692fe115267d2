// scripts/cluster failover: a primary killed, frozen, made read-only or restarted under writes, again and again, each time before fresh servers;
// a verdict per promise over all of them.
// Must not know how a history is made or judged.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line; 130: stopped by a signal.
import { parseArgs } from 'node:util';
import { makeFailoverHistory } from '../../test/support/histories/failover-history.ts';
import { failoverPromises } from '../../test/support/histories/failover-judge.ts';
import { type Strike, strikes } from '../../test/support/histories/failover-strikes.ts';
import { createRandom } from '../../test/support/random.ts';
import { Fault } from '../support/command-line.ts';
import { parseRounds, playRounds, type Rounds, roundOptions } from '../support/rounds.ts';
import { runCommand, say } from '../support/run-command.ts';
import type { Verdict } from '../support/verdicts.ts';

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

type Order = Rounds<Strike> & {
  readonly semiSync: boolean;
  readonly losing: boolean;
  readonly floating: boolean;
  readonly replicas: number;
};

const clients = 12;
/** From a strike to the promotion, at most: whoever promotes has to notice first. */
const mostAfterMs = 1_500;
/** Far more than servers, gateway, failover and look take; a gateway that serves nothing is waited for for a while. */
const longestRoundMs = 90_000;

function parseOrder(argv: readonly string[]): Order | null {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      ...roundOptions(100),
      'semi-sync': { type: 'boolean', default: false },
      losing: { type: 'boolean', default: false },
      floating: { type: 'boolean', default: false },
      alone: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  const rounds = parseRounds(values.alone ? { ...values, how: 'restarted' } : values, strikes);
  if (values.losing && values['semi-sync']) throw new Fault('--semi-sync loses nothing');
  return {
    ...rounds,
    semiSync: values['semi-sync'],
    losing: values.losing,
    floating: values.floating,
    replicas: values.alone ? 0 : 2,
  };
}

async function runRounds(order: Order): Promise<Verdict[]> {
  say(`seed ${order.seed}`);
  const random = createRandom(order.seed);
  const promises = Object.values(failoverPromises);
  let allLost = 0;
  const verdicts = await playRounds(
    order,
    { promises, since: 'the promotion' },
    async (how, seed) => {
      // Whoever makes a primary read-only waits for the replicas, and a restarted one has its own writes.
      const losing = order.losing && (how === 'killed' || how === 'frozen');
      const afterMs = Math.round(random() * mostAfterMs);
      const history = await makeFailoverHistory({ ...order, how, losing, clients, seed, afterMs });
      const lost = history.lost.length;
      allLost += lost;
      const lead = `${how}, ${afterMs} ms to the promotion, ${lost} lost with the former primary`;
      return { ...history, lead };
    },
  );
  say(`${allLost} writes lost with former primaries`);
  return verdicts;
}

await runCommand({
  help,
  parse: parseOrder,
  prefix: 'dbhttpd-cluster-',
  longestMs: ({ rounds }) => rounds * longestRoundMs,
  run: runRounds,
});
