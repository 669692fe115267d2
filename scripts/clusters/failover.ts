// scripts/cluster failover: kills, freezes, restarts a primary or makes it read-only under writes, each time with fresh servers. Prints a verdict
// for each promise.
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

Makes 100 failovers, each with its own MariaDB primary and two replicas, under writes by /db, /v1/query, and batches with idempotency keys,
which are repeated until they are answered. The replies are then compared with what the servers hold.

  --how        killed, frozen, read-only: a replica is promoted, and the former primary comes back writable. restarted: the primary crashes and
               comes back in its place. All of them in turn, unless some are named
  --semi-sync  writes wait for a replica: no acknowledged write may be lost
  --losing     replicas do not receive the last writes before a server is killed or frozen
  --floating   the gateway knows one address, which moves to the new primary. Otherwise it knows all three and must find the primary
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
/** The longest time from a strike to the promotion, because an operator has to notice first. */
const maxAfterMs = 1_500;
/** Far more than servers, gateway and failover take. The run also waits for a while for a gateway that serves nothing. */
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
      // An operator who makes a primary read-only waits for the replicas, and a restarted primary has its own writes.
      const losing = order.losing && (how === 'killed' || how === 'frozen');
      const afterMs = Math.round(random() * maxAfterMs);
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
