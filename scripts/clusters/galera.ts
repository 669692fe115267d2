// scripts/cluster galera: strikes the node that is written to, in each round, in one cluster of three under writes. Prints a verdict for each
// promise.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line; 130: stopped by a signal.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startGalera } from '../../test/support/clusters/galera.ts';
import { failoverPromises } from '../../test/support/histories/failover-judge.ts';
import {
  type GaleraStrike,
  galeraPromises,
  galeraStrikes,
  makeGaleraHistory,
} from '../../test/support/histories/galera-history.ts';
import { installGalera } from '../support/galera-root.ts';
import { parseRounds, playRounds, type Rounds, roundOptions } from '../support/rounds.ts';
import { runCommand, say } from '../support/run-command.ts';
import type { Verdict } from '../support/verdicts.ts';

const help = `Usage: scripts/cluster galera [--rounds <n>] [--how <strike>,…] [--seed <n>]

Makes 25 rounds with a Galera cluster of three nodes and two gateways that know them all, under writes. The replies are then compared with
what the nodes hold. Galera is unpacked from Debian's archive into its own folder (~/.cache/dbhttpd/galera-10.11, or DBHTTPD_GALERA_ROOT).
Nothing is installed.

  --how   killed, frozen, desynced, isolated: the node that is written to, which comes back and is written to again. quorum: the others are
          frozen. All of them in turn, unless some are named
  --seed  decides the ways of writing; it is printed
`;

const clients = 12;
/** The start of the cluster, and the download of its programs. */
const longestStartMs = 600_000;
/** Far more than a strike and a return take. */
const longestRoundMs = 120_000;

async function runRounds(order: Rounds<GaleraStrike>): Promise<Verdict[]> {
  say(`seed ${order.seed}`);
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const root = process.env.DBHTTPD_GALERA_ROOT || join(cache, 'dbhttpd/galera-10.11');
  const cluster = await startGalera(await installGalera(root));
  const { alone: _, ...common } = failoverPromises;
  const promises = [...Object.values(common), ...Object.values(galeraPromises)];
  try {
    return await playRounds(
      order,
      { promises, since: 'the cluster went on' },
      async (how, seed) => {
        const history = await makeGaleraHistory(cluster, { how, clients, seed });
        const back = `the first node written to ${Math.round(history.backMs)} ms after its return`;
        return { ...history, lead: `${how}, ${back}` };
      },
    );
  } finally {
    await cluster.stop();
  }
}

await runCommand({
  help,
  parse: (argv) => {
    const { values } = parseArgs({ args: [...argv], options: roundOptions(25) });
    return values.help ? null : parseRounds(values, galeraStrikes);
  },
  prefix: 'dbhttpd-cluster-',
  longestMs: ({ rounds }) => longestStartMs + rounds * longestRoundMs,
  run: runRounds,
});
