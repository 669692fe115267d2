// scripts/cluster group: strikes a member of a MySQL group, in each round, in one group of three under writes. Prints a verdict for each promise.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line; 130: stopped by a signal.
import { parseArgs } from 'node:util';
import { startGroup } from '../../test/support/clusters/group.ts';
import { failoverPromises } from '../../test/support/histories/failover-judge.ts';
import {
  type GroupStrike,
  groupPromises,
  groupStrikes,
  makeGroupHistory,
} from '../../test/support/histories/group-history.ts';
import { chooseCache } from '../compatibility/servers.ts';
import { installGroupServer } from '../support/group-server.ts';
import { parseRounds, playRounds, type Rounds, roundOptions } from '../support/rounds.ts';
import { runCommand, say } from '../support/run-command.ts';
import type { Verdict } from '../support/verdicts.ts';

const help = `Usage: scripts/cluster group [--rounds <n>] [--how <strike>,…] [--seed <n>]

Makes 24 rounds with three MySQL servers in a group, and two gateways that know them all, under writes. The replies are then compared with
what the members hold. MySQL is the one of scripts/matrix, unpacked from Debian's archive into its cache
(~/.cache/dbhttpd/matrix, or DBHTTPD_MATRIX_DIR), or the one in the folder DBHTTPD_TEST_SERVER_ROOT; nothing is installed.

  --how   with one primary: killed, frozen, switched (another member is made the primary), quorum (the two others are killed, and it has to
          go on alone), stopped (another member leaves), recovering (another member joins, and cannot catch up). With several primaries,
          of which the first is written to: several-killed, several-frozen. In turn, unless some are named
  --seed  decides the ways of writing; it is printed
`;

const clients = 12;
/** The start of the group, and the download of its programs. */
const longestStartMs = 600_000;
/** Far more than a strike and a return take. */
const longestRoundMs = 180_000;

async function runRounds(order: Rounds<GroupStrike>): Promise<Verdict[]> {
  say(`seed ${order.seed}`);
  const { DBHTTPD_TEST_SERVER_ROOT: given } = process.env;
  const program = await installGroupServer({ given, cache: chooseCache(process.env) }, say);
  const group = await startGroup(program);
  const promises = [...Object.values(failoverPromises), ...Object.values(groupPromises)];
  try {
    return await playRounds(order, { promises, since: 'the group went on' }, async (how, seed) => {
      const history = await makeGroupHistory(group, { how, clients, seed });
      const back = `all members back after ${Math.round(history.backMs)} ms`;
      return { ...history, lead: `${how}, ${back}` };
    });
  } finally {
    await group.stop();
  }
}

await runCommand({
  help,
  parse: (argv) => {
    const { values } = parseArgs({ args: [...argv], options: roundOptions(24) });
    return values.help ? null : parseRounds(values, groupStrikes);
  },
  prefix: 'dbhttpd-cluster-',
  longestMs: ({ rounds }) => longestStartMs + rounds * longestRoundMs,
  run: runRounds,
});
